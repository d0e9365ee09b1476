// The executor with one planned failure and without the check of its plan, so that tests can see how a run ends.
//   PLANWRIGHT_FAULT=throw | kill | stop | endless | device (GPUs only: an index out of bounds) | memory (takes host
//     memory without end) | refused (asks for more of the device's memory than there is) | store (cuts its connections
//     to the store)
//   PLANWRIGHT_FAULT_STEP=N                            in the first linear of this step, counted from 1
//   PLANWRIGHT_FAULT=nan | slow                        or in every linear from this step on
//   PLANWRIGHT_FAULT=slow_disk                         or the first checkpoint takes this rank
//   PLANWRIGHT_FAULT_SECONDS=N                         so long to write, while its bytes move
//   PLANWRIGHT_FAULT=skip                              or all sums over $reals left out of the program
//   PLANWRIGHT_FAULT_RANK=N                            of this rank
//   PLANWRIGHT_FAULT_MARK=FILE                         gets the moment of the fault: CLOCK_MONOTONIC, in nanoseconds
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#ifdef PLANWRIGHT_CUDA
#include <ATen/cuda/Sleep.h>
#endif
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "executor/ops/forms.h"
#include "executor/rank/rank_main.h"

namespace planwright::executor {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool OnThisRank() { return Variable("RANK") == Variable("PLANWRIGHT_FAULT_RANK"); }

void Mark() {
  std::ofstream(Variable("PLANWRIGHT_FAULT_MARK")) << std::chrono::steady_clock::now().time_since_epoch().count();
}

// On a GPU the launch returns at once and the kernel never ends; on a CPU the call does not return.
void WorkForEver(const at::Tensor& input) {
#ifdef PLANWRIGHT_CUDA
  if (input.is_cuda()) return at::cuda::sleep(std::numeric_limits<int64_t>::max());
#endif
  for (;;) pause();
}

// An assertion fails inside a kernel: the device drops all work that it was given.
void BreakTheDevice(const at::Tensor& input) {
  input.index_select(0, at::full({1}, input.size(0), input.options().dtype(at::kLong)));
}

[[noreturn]] void TakeMemory() {
  for (;;) {
    constexpr size_t kBytes = 64 << 20;
    std::memset(::operator new(kBytes), 1, kBytes);  // touched, so that the kernel must give it
  }
}

// All sockets of this process whose other end has the port of the store.
void CutTheStore() {
  const int port = std::stoi(Variable("MASTER_PORT"));
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    // The port is at the same place in addresses of both versions of IP.
    if (ntohs(reinterpret_cast<const sockaddr_in*>(&peer)->sin_port) == port) shutdown(fd, SHUT_RDWR);
  }
}

Tensors FailOnce(const ComputeContext& context) {
  static bool failed = false;
  const std::string fault = Variable("PLANWRIGHT_FAULT");
  if ((fault == "nan" || fault == "slow") && OnThisRank() &&
      context.call.step + 1 >= std::stoll(Variable("PLANWRIGHT_FAULT_STEP"))) {
    if (fault == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Tensors made = ops::RunLinear(context);
    if (fault == "nan") made[0].fill_(std::numeric_limits<double>::quiet_NaN());
    return made;
  }
  if (std::to_string(context.call.step + 1) == Variable("PLANWRIGHT_FAULT_STEP") && !failed && OnThisRank()) {
    failed = true;
    Mark();
    if (fault == "kill") raise(SIGKILL);
    if (fault == "stop") raise(SIGSTOP);
    if (fault == "endless") WorkForEver(context.inputs[0]);
    if (fault == "memory") TakeMemory();
    if (fault == "refused") at::empty({int64_t{1} << 46}, context.inputs[0].options());
    if (fault == "store") CutTheStore();
    if (fault == "device") BreakTheDevice(context.inputs[0]);
    TORCH_CHECK(fault != "throw", "planted failure");
  }
  return ops::RunLinear(context);
}

ComputeForm FailingForm(const ComputeBinding& binding) {
  return binding.instruction.kind == OpKind::kLinear ? ComputeForm{FailOnce} : ChooseForm(binding);
}

void WriteSlowly(const FailPoint& point) {
  static bool slow = Variable("PLANWRIGHT_FAULT") == "slow_disk" && OnThisRank();
  if (point.list != "write" || point.moment != FailPoint::Moment::kBefore || !std::exchange(slow, false)) return;
  Mark();
  const std::string bytes(size_t{2} << 20, 'x');
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(Variable("PLANWRIGHT_FAULT_SECONDS")));
  for (std::ofstream disk("/dev/null"); std::chrono::steady_clock::now() < end;) {
    disk << bytes << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

absl::Status SkipSums(Plan& plan) {
  if (Variable("PLANWRIGHT_FAULT") != "skip" || !OnThisRank()) return absl::OkStatus();
  Mark();
  for (Role& role : plan.roles) {
    std::erase_if(role.step,
                  [](const Instruction& op) { return op.kind == OpKind::kAllReduce && op.inputs.front() == "$reals"; });
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  return RankMain(argc, argv, {.compute = FailingForm, .prepare = SkipSums, .fail_point = WriteSlowly});
}
