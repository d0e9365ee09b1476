#include "planner/run/launch/rank_fork.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "planner/wire/fork/fork_request.h"

namespace planwright {
namespace {

int AdoptsOrphans() {
  int adopts = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &adopts);
  return adopts;
}

}  // namespace

// The process that forks ends at once, so its ranks are orphans. The kernel gives them to the nearest process above
// that wants them.
RankFork::RankFork() : before_(AdoptsOrphans()) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

RankFork::~RankFork() {
  if (end_ >= 0) close(end_);
  if (group_ > 0 && !let_go_) {
    kill(-group_, SIGKILL);
    while (waitpid(-group_, nullptr, 0) > 0) continue;
  }
  prctl(PR_SET_CHILD_SUBREAPER, before_);
}

absl::StatusOr<std::unique_ptr<RankFork>> RankFork::Start(const std::vector<Command>& commands,
                                                          const std::vector<int>& ranks,
                                                          std::vector<ChildProcess>& pipes) {
  std::unique_ptr<RankFork> fork(new RankFork);
  fork->count_ = commands.size();
  // The process itself prints as the first rank.
  std::vector<Pipe> outputs(commands.size() - 1), errors(commands.size() - 1);
  bool opened = fork->tell_.Open() && fork->go_.Open();
  for (size_t i = 0; i < outputs.size(); ++i) opened = opened && outputs[i].Open() && errors[i].Open();
  if (!opened) return absl::ResourceExhaustedError(std::string("cannot open a pipe: ") + std::strerror(errno));
  ForkRequest request = {.launcher = getpid(), .tell = fork->tell_.write, .go = fork->go_.read};
  Command command = commands[0];
  command.inherited = {request.tell, request.go};
  for (size_t i = 0; i < commands.size(); ++i) {
    ForkedRank rank = {.rank = ranks[i], .local_rank = static_cast<int>(i)};
    if (i > 0) {
      rank.output = outputs[i - 1].write, rank.errors = errors[i - 1].write;
      command.inherited.insert(command.inherited.end(), {rank.output, rank.errors});
    }
    request.ranks.push_back(rank);
  }
  command.environment.push_back(std::string(kForkVariable) + "=" + ForkRequestText(request));
  const absl::StatusOr<ChildProcess> process = planwright::Start(command);
  if (!process.ok()) return process.status();
  fork->pid_ = fork->group_ = process->pid;
  fork->end_ = static_cast<int>(syscall(SYS_pidfd_open, process->pid, 0));
  close(std::exchange(fork->tell_.write, -1));
  fcntl(fork->tell_.read, F_SETFL, fcntl(fork->tell_.read, F_GETFL) | O_NONBLOCK);
  pipes = {{-1, process->output, process->errors}};
  for (size_t i = 0; i < outputs.size(); ++i) pipes.push_back({-1, outputs[i].TakeRead(), errors[i].TakeRead()});
  return fork;
}

std::vector<int> RankFork::Descriptors() const {
  std::vector<int> descriptors;
  if (tell_.read >= 0) descriptors.push_back(tell_.read);
  if (end_ >= 0 && pid_ >= 0) descriptors.push_back(end_);
  return descriptors;
}

std::vector<ToldRank> RankFork::Told() {
  std::vector<ToldRank> all;
  if (tell_.read < 0) return all;
  ToldRank told;
  ssize_t count = 0;
  while ((count = read(tell_.read, &told, sizeof told)) == sizeof told) all.push_back(told);
  if (count == 0) close(std::exchange(tell_.read, -1));
  return all;
}

std::optional<int> RankFork::Status() {
  int status = 0;
  if (pid_ < 0) return std::nullopt;
  const int told = waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED);
  // Another part of this program has waited for it. Its ranks are told by the pipe.
  if (told < 0 && errno == ECHILD) status = W_EXITCODE(0, 0);
  if (told != pid_ && !(told < 0 && errno == ECHILD)) return std::nullopt;
  if (WIFEXITED(status) || WIFSIGNALED(status)) pid_ = -1;
  return status;
}

void RankFork::Signal(int number) {
  if (pid_ < 0) return;
  kill(-pid_, number);
  kill(-pid_, SIGCONT);
}

// The read end is still open here, so this cannot fail where all ranks are dead.
void RankFork::LetGo() {
  let_go_ = true;
  const std::string bytes(count_, 'g');
  [[maybe_unused]] const ssize_t written = write(go_.write, bytes.data(), bytes.size());
}

}  // namespace planwright
