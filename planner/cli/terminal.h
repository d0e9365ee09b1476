// What the terminal that we write to can show.
#pragma once

namespace planwright {

// Whether the stream `fd` is a terminal that shows colours, and the user has not set NO_COLOR.
bool WantsColor(int fd);

}  // namespace planwright
