"""A record: a document before it is tokens. And where its pictures are."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture of a record: a member of a tar file, a file, or (from parquet) bytes that have no file of their own."""
    path: str = ""        # of the tar file or the file, as it can be opened from here
    member: str = ""      # name in the tar file
    data: bytes = b""
    is_cut: bool = False  # it plainly ends too early

    def name(self):
        return f"{self.path}: {self.member}" if self.member else self.path or "picture bytes"


@dataclasses.dataclass
class Record:
    """Either `messages`, each {"role", "content"} with text that has a mark `<image>` for each picture, or `text`."""
    place: str                    # FILE:LINE and the like, for messages
    messages: list | None = None
    text: str | None = None
    pictures: list = dataclasses.field(default_factory=list)   # in the order of their marks
    tools: list | None = None     # tools of the conversation, for the template
    unused: tuple = ()            # keys of the input that nothing was made of
    variables: dict = dataclasses.field(default_factory=dict)   # of the template, for this conversation


MARK = "<image>"
