"""``python -m spectralgp``, and the command of that name."""

from __future__ import annotations

import sys

from spectralgp._basics.extras import require


def main() -> None:
    """Run the command line, or print which library it lacks."""
    try:
        for library in ("typer", "rich"):
            require(library, "cli", "for the command line")
        from spectralgp.cli import app
    except ImportError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    app(prog_name="spectralgp")


if __name__ == "__main__":
    main()
