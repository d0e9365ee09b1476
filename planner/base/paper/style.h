// The style sheet of every HTML page.
#pragma once

namespace planwright {

extern const char kPageStyle[];

}  // namespace planwright
