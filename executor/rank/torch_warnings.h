// Warnings of LibTorch in the log of the rank.
#pragma once

namespace planwright::executor {

// From now on those of the calling thread are in the log too, with their source locations in LibTorch; the handler
// belongs to a thread. Those of other threads are on stderr only, as before.
void LogTorchWarnings();

}  // namespace planwright::executor
