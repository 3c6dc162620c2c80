"""Additions to the page of ``pulsarbox top --serve``: phones and tablets, the focus, and lost connections.

textual-serve's page is made for a desktop: without a viewport, phones show it in 980 CSS pixels; xterm.js does not
report swipes to applications; and a tap opens the keyboard, which covers half of the screen. Its terminal has no focus
until the first click, and a lost connection ends the page.
"""

import json
from html import escape
from typing import Final

KEYS: Final = (
    ("esc", "\x1b"),
    ("↑", "\x1b[A"),
    ("↓", "\x1b[B"),
    ("enter", "\r"),
    ("x", "x"),
    ("/", "/"),
    ("?", "?"),
)
"""Keys of the bar below the dashboard: label, and what a terminal sends. The last line of the dashboard has more."""

_HEAD: Final = """
    <meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content" />
    <title>pulsarbox top</title>
    <script>
      // textual-serve keeps its connection to itself.
      window.WebSocket = class extends WebSocket {
        constructor(...args) {
          super(...args);
          window.dashboard = this;
          this.addEventListener("open", () => document.querySelector(".xterm-helper-textarea").focus());
          this.addEventListener("close", (event) => event.wasClean || reconnect());
        }
      };
      // A connection that was lost, not closed: load the page again once the server can be reached.
      function reconnect() {
        const message = document.querySelector(".closed-dialog .message");
        message.textContent = "Connection lost. Reconnecting ...";
        const timer = setInterval(() => fetch(location.href, { cache: "no-store" }).then((answer) => {
          if (answer.ok) return location.reload();
          clearInterval(timer);
          message.textContent = "The server was restarted. Open the address that it has printed.";
        }, () => null), 2000);
      }
    </script>
"""
_STYLE: Final = """
    <style>
      body { margin: 0; overflow: hidden; background: #10141b; }
      .xterm .xterm-viewport { background-color: #10141b !important; }
      .shade { background: #10141b !important; }
      .intro { box-sizing: border-box; max-width: calc(100vw - 32px); margin: 16px !important; }
      .intro svg { display: none; }
      body .textual-terminal { height: 100dvh; }
      #keys { display: none; }
      @media (pointer: coarse) {
        body .textual-terminal { height: calc(100dvh - 48px); touch-action: none; }
        #keys { display: flex; position: fixed; left: 0; right: 0; bottom: 0; height: 48px; background: #1e2531; }
        body #keys button { flex: 1; margin: 4px 2px; padding: 0; border-radius: 4px; background: #34465e;
          color: #fff; font: 16px monospace; touch-action: manipulation; }
        body.-closed #keys { display: none; }
      }
    </style>
"""
_BODY: Final = """
    <div id="keys">%(keys)s<button type="button" data-keyboard>⌨</button></div>
    <script>
      const page = document.querySelector("#terminal"), isTouch = matchMedia("(pointer: coarse)").matches;
      if (isTouch && !new URLSearchParams(location.search).has("fontsize")) page.dataset.fontSize = 14;
      const send = (text) => window.dashboard?.readyState === 1 && dashboard.send(JSON.stringify(["stdin", text]));
      const field = () => page.querySelector(".xterm-helper-textarea");
      const keyboard = (shown) => field()?.setAttribute("inputmode", shown ? "text" : "none");
      document.querySelectorAll("#keys button").forEach((button) => {
        button.addEventListener("pointerdown", (event) => event.preventDefault());  // keeps the focus
        button.addEventListener("click", () => {
          if (button.dataset.key) return send(JSON.parse(button.dataset.key));
          const was = field().getAttribute("inputmode") === "text";
          keyboard(!was);
          field().blur();
          field().focus();
        });
      });
      if (isTouch) addEventListener("load", () => { keyboard(false); scrollByTouch(); });
      // A swipe turns the wheel, one step for each line. On the way, it is no click.
      function scrollByTouch() {
        let last = null, passed = 0;
        const line = () => page.clientHeight / Math.max(Math.round(page.clientHeight / 17), 1);
        page.addEventListener("touchstart", (event) => { last = event.touches[0]; passed = 0; }, { passive: true });
        page.addEventListener("touchmove", (event) => {
          event.preventDefault();
          event.stopPropagation();
          const now = event.touches[0];
          passed += last.clientY - now.clientY;
          last = now;
          for (; Math.abs(passed) >= line(); passed -= Math.sign(passed) * line())
            page.querySelector(".xterm-screen").dispatchEvent(new WheelEvent("wheel", {
              deltaY: Math.sign(passed) * line(), clientX: now.clientX, clientY: now.clientY, bubbles: true,
              cancelable: true }));
        }, { passive: false, capture: true });
      }
    </script>
"""


def with_touch(html: str) -> str:
    """Return the page with a viewport, a bar of keys, and scrolling by touch."""
    buttons = "".join(
        f'<button type="button" data-key="{escape(json.dumps(sent))}">{label}</button>' for label, sent in KEYS
    )
    html = html.replace("<head>", "<head>" + _HEAD, 1)
    html = html.replace("</head>", _STYLE + "  </head>", 1)
    return html.replace("</body>", _BODY.replace("%(keys)s", buttons) + "  </body>", 1)
