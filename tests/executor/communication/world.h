// Runs a function as each of N ranks, one process each, over Gloo on this machine.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace planwright::executor {

// A socket that is bound to a free port of this machine, so that no other process gets the port meanwhile. It does not
// listen and shares the port with those who ask for it by number (SO_REUSEADDR), as the store of rank 0 does. -1: there
// is none.
inline int HoldFreePort(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), shares = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) return -1;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares);
  port = ntohs(address.sin_port);
  return fd;
}

// `body(rank, port)` returns the rank's exit status; an exception or a failed expectation is status 1. Call it before
// this process starts any thread of LibTorch: a fork does not copy threads.
inline std::vector<int> RunWorld(int ranks, const std::function<int(int rank, int port)>& body) {
  int port = 0;
  const int held = HoldFreePort(port);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGPIPE, SIG_IGN);  // as ranks do: what they write to may be gone
      int status = 1;
      try {
        status = body(rank, port);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %.500s\n", rank, error.what());
      }
      if (::testing::Test::HasFailure()) status = 1;
      std::fflush(nullptr);
      _exit(status);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  close(held);
  return statuses;
}

}  // namespace planwright::executor
