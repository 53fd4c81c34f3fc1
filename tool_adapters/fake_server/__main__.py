"""Start the fake server's shell; named by string, because a pure package imports no shell."""

import runpy

if __name__ == "__main__":
    runpy.run_module("ackbox.tool_adapters.shell.fake_server", run_name="__main__")
