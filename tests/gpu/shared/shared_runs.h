// Runs whose ranks share one device, each as a node of its own with an agent (tests/support/one_rank_nodes.h), and the
// runs of one rank that they are compared with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {

// What came of a case.
struct SharedResult {
  std::string wrong;    // empty: it passed
  std::string figures;  // what was measured, one line
};

class SharedRuns {
 public:
  // `binaries`: the folder of plan and the executors. `source`: the clone with the recipes. `device`: "cuda", one GPU
  // of this machine, or "cpu".
  SharedRuns(std::string binaries, std::string source, std::string device);
  ~SharedRuns();
  SharedRuns(const SharedRuns&) = delete;

  struct Options {
    std::string precision;
    int steps = 3;                          // through sockets a step takes seconds
    std::string executor = {}, fault = {};  // PLANWRIGHT_FAULT of faulty_executor
    std::string run_dir = {};               // as in LaunchOptions
    std::string probe = {};
    std::vector<std::string> options = {};
    bool probes = true;
  };
  TrainingRun Train(const Layout& layout, const Options& options) const;
  // The same model and batch on one rank, on the CPU or on the device itself.
  TrainingRun TrainOne(const Layout& layout, const Options& options, const std::string& device) const;

  // One rank. Each is run once.
  const TrainingRun& One(const Layout& layout, const std::string& precision, const std::string& device, int steps = 3);
  // One rank of the device in bf16, which recorded its choices of experts in `choices`; empty: the model has none.
  struct Recorded {
    TrainingRun run;
    std::string choices;
  };
  const Recorded& RecordedOne(const Layout& layout);

  // The path of a new folder, which goes when this object does.
  std::string Folder();
  int RanksOf(const Layout& layout) const;
  const std::string& binaries() const { return binaries_; }
  const std::string& source() const { return source_; }
  const std::string& device() const { return device_; }

 private:
  LaunchOptions OptionsFor(const Layout& layout, const Options& options) const;

  const std::string binaries_, source_, device_;
  std::string folder_;
  int folders_ = 0;
  std::map<std::string, TrainingRun> ones_;
  std::map<std::string, Recorded> recorded_;
};

// Why a run cannot be compared: it did not end well, or not after so many steps, or left no gradients. Empty: it can.
std::string WhyNotRun(const TrainingRun& run, const std::string& what, size_t steps, bool probes = true);

// What differs, worst first, a few lines; and the worst distances.
SharedResult ResultOf(const Comparison& comparison, bool may_part);

// "1.0e-14".
std::string Scientific(double value);

}  // namespace planwright::testing
