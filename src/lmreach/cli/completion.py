"""What a shell needs to complete commands and options."""

from typing import Literal

Shell = Literal["bash", "zsh", "fish", "powershell"]


def completion(shell: Shell, /) -> int:
    """Print the script with which a shell completes commands and options.

    For bash: lmreach completion bash >> ~/.bashrc. For zsh, write it to a file _lmreach in a folder of
    $fpath; for fish, to ~/.config/fish/completions/lmreach.fish.

    Parameters
    ----------
    shell
        bash, zsh, fish or powershell.
    """
    from lmreach.cli import app

    print(app.generate_completion(prog_name="lmreach", shell=shell))
    return 0
