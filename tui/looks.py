"""Component classes whose styles are found when they are first drawn with.

Textual finds all of them for each widget whenever any of its styles may have changed, which was half of what it took
until the dashboard was seen: tables have a dozen, of which a screen at rest draws three.
"""

from typing import TYPE_CHECKING

from textual.css.styles import RenderStyles
from textual.dom import DOMNode

if TYPE_CHECKING:
    from textual.widget import Widget as _Base
else:
    _Base = object


class Looks(_Base):
    """For a widget, before its other bases. It names no ``COMPONENT_CLASSES``: any that CSS has will do."""

    def get_component_styles(self, *names: str) -> RenderStyles:
        """See textual.dom.DOMNode."""
        for name in names:
            if name not in self._component_styles:
                node = DOMNode(classes=name)
                node._attach(self)
                self.app.stylesheet.apply(node)
                self._component_styles[name] = node.styles
        return super().get_component_styles(*names)

    def notify_style_update(self) -> None:
        """See textual.dom.DOMNode."""
        self._component_styles.clear()
        super().notify_style_update()
