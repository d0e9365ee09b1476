// Tells the head of a job that its time is nearly over, as Slurm does, but by what the run has measured meanwhile: the
// script of a job, and so Slurm's signal, is made before its first step.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace planwright {

class JobClock {
 public:
  // Sends SIGUSR1 to this process, once, when `margin()` seconds are left until `end_time`, the text of
  // SLURM_JOB_END_TIME (seconds since 1970); anything else: never. Not before half of the job's time is over, as a job
  // that does nothing but end would be started again for ever. All threads must have the signal blocked. `period`: how
  // often the margin is asked for.
  JobClock(const std::string& end_time, std::function<double()> margin,
           std::chrono::milliseconds period = std::chrono::seconds(10));
  ~JobClock();
  JobClock(const JobClock&) = delete;
  JobClock& operator=(const JobClock&) = delete;

 private:
  void Run(double end);

  const std::function<double()> margin_;
  const std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace planwright
