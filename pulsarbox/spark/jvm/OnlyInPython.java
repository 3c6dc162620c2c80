package pulsarbox.spark;

/** What the JVM does not read, or not find; the message says what. Python reads it, or reports what is wrong. */
final class OnlyInPython extends RuntimeException {
  private static final long serialVersionUID = 1;

  OnlyInPython(String message) {
    super(message, null, false, false); // a stack trace would cost more than the rest
  }
}
