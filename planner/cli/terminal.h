// What the terminal on a stream can show.
#pragma once

#include <cstddef>
#include <string>

namespace planwright {

// True if the stream `fd` is a terminal with colours and the user has not set NO_COLOR.
bool WantsColor(int fd);

// Characters in a line of the stream `fd`: COLUMNS if it is set, else the width of the terminal, else `most`. Never
// more than `most`.
size_t LineWidth(int fd, size_t most);

// Whether a person can be asked: stdin and stderr are terminals.
bool CanAsk();
// Asks on stderr; true if the answer is y or yes. Anything else, and the end of the input, is no.
bool Ask(const std::string& question);

}  // namespace planwright
