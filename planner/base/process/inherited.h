// What a process has from whoever started it. A supervisor, a shell or a library may leave it without standard streams,
// with signals that are blocked, or with children whose ends nobody keeps. No program here may depend on it.
#pragma once

#include <initializer_list>

namespace planwright {

// Opens standard streams that are closed, lets the ends of children be kept, and unblocks all signals but `kept`. A
// file that may not grow (ulimit -f) becomes an error of the call that writes to it, as a full disk is. Signals that
// are ignored stay so: whoever starts a program with nohup means it. The first call of main(). AllowManyFiles, too.
void SettleInherited(std::initializer_list<int> kept = {});

// Lets this process have as many files and connections open as its user may: often a soft limit of 1,024 stands before
// it, and a checkpoint of more ranks is read from as many files.
void AllowManyFiles();

// Lets waitpid() tell how children end: with SIGCHLD ignored the kernel keeps no ends and sends no signal. Whoever
// starts a child and waits for it calls it before.
void KeepEndsOfChildren();

}  // namespace planwright
