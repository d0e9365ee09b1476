// Whether the files of this process make progress. A disk has no estimate, so saving and loading have no fixed time:
// they hang if nothing moves any more.
#pragma once

#include <cstdint>
#include <optional>

namespace planwright::executor {

// Bytes that this process has read and written so far, through calls and through mapped files, as the kernel counts
// them (/proc/self/io); nullopt: it does not. Sockets do not count.
std::optional<int64_t> BytesMoved();

}  // namespace planwright::executor
