// A request to save and stop: SIGUSR1, which the launcher sends when it is interrupted (docs/checkpoints.md#stopping).
#pragma once

namespace planwright::executor {

// A request that has come, or comes before ListenForStop, ends the process. While a rank starts it may wait for long
// (it meets others, reads an index, loads weights), and nothing is lost with it. The launcher starts ranks with the
// signal blocked, so that none is ended before it has read what it is to do.
void EndIfAsked();
// From now on the signal is a request, which AskedToStop tells.
void ListenForStop();
bool AskedToStop();  // the first time that it is true, it is logged

}  // namespace planwright::executor
