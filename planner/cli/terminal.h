// What the terminal that we write to can show.
#pragma once

#include <cstddef>

namespace planwright {

// Whether the stream `fd` is a terminal that shows colours, and the user has not set NO_COLOR.
bool WantsColor(int fd);

// Characters that fit in a line of the stream `fd`: what COLUMNS says, else the width of its terminal, else and at most
// `most`.
size_t LineWidth(int fd, size_t most);

}  // namespace planwright
