// A run of the tiny recipe in which one rank fails on purpose, and how it ended. On CPU ranks or GPUs; also for
// tests/gpu.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace planwright::testing {

struct FaultyRun {
  std::string binaries;  // folder of `plan` and failing_executor
  std::string recipe;    // the tiny one
  std::string device;    // "cpu" or "cuda"
  int ranks = 2;         // 1: encoder and language model on rank 0; 2: one on each
  std::string fault;     // as in failing_executor.cc
  int fault_rank = 0;
  int fault_step = 2;        // from 1. In the first, most communicators have not been used yet
  int timeout_seconds = 0;   // the run's
  int patience_seconds = 0;  // after this time the test kills everything
};

struct Aftermath {
  bool ended = false;             // the launcher ended by itself and no process is left
  int status = -1;                // of the launcher
  nlohmann::json outcome;         // RUN/outcome.json; null: there is none
  std::string output;             // what was printed
  std::optional<double> noticed;  // seconds from the fault to when a rank, or the launcher, noticed it
  std::optional<double> gone;     // seconds from then until no process was left
};

Aftermath RunWithFault(const FaultyRun& run);

// What is wrong with the end of a run. Empty if it ended with the right status and named the right rank and
// instruction.
std::string WhatIsWrong(const FaultyRun& run, const Aftermath& after);

}  // namespace planwright::testing
