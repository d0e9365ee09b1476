// A request to save and stop: SIGUSR1, which the launcher sends when it is interrupted (docs/checkpoints.md#stopping).
#pragma once

namespace planwright::executor {

// From now on the signal is a request, also before the first step: then that one step is run and saved.
void ListenForStop();
bool AskedToStop();  // the first time that it is true, it is logged

}  // namespace planwright::executor
