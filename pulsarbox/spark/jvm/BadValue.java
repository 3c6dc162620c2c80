package pulsarbox.spark;

/** A value does not match its schema, as Python would find too. */
final class BadValue extends RuntimeException {
  private static final long serialVersionUID = 1;

  static final BadValue BAD = new BadValue();

  private BadValue() {
    super("the value does not match its schema", null, false, false);
  }
}
