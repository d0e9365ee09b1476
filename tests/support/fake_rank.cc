// A rank that does what its words say, in order. Words are its arguments, or FAKE_RANK_N in the environment of rank N.
// Those of FAKE_LOADING come first, before it forks ranks if it is asked to:
//   pid=FILE     write its process id          child=FILE  start a process that sleeps, and write its id
//   pid_of_rank=PREFIX   write its process id into PREFIX and its rank      fail_rank=N  exit with 3 if it is rank N
//   say=TEXT     print to stdout               err=TEXT    print to stderr
//   recorder=DIR:ORIGIN  write a recorder page with one instruction begun
//   exit=N       kill=SIGNAL     stop (until SIGCONT)     sleep (longer than any test)
//   ignore_end  on_end=N    what kEndSignal does: nothing, exit with N      on_usr1=N  what SIGUSR1 does
//   unblock      from now on SIGUSR1 is received
//   thread       start a thread, as a library may
//   lie          tell the launcher of ranks that it did not ask for, and of a process that is none of its own
//   await=FILE   wait until the file has contents
//   await_stop=FILE, await_end=FILE   wait until the process whose id is in it is stopped, or gone
//   env=NAME     print NAME's value            arguments   print this program's arguments
//   cores        print the cores on which it may run, as the kernel lists them: "cores 0-3,8"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "planner/wire/fork/become_rank.h"
#include "planner/wire/fork/end_signal.h"
#include "planner/wire/fork/fork_request.h"
#include "planner/wire/records/recorder_format.h"
#include "tests/support/eventually.h"

namespace {

using planwright::testing::Eventually;

void WriteRecorder(const std::string& value) {
  const size_t colon = value.rfind(':');
  static planwright::RecorderPage page{};
  std::memcpy(page.magic, planwright::kRecorderMagic, sizeof page.magic);
  page.rank = std::atoi(std::getenv("RANK"));
  page.state = 1;
  page.begun = 1;
  planwright::RecorderEntry& entry = page.entries[1];
  entry.number = 1;
  entry.state = 1;
  entry.step = 7;
  entry.origin = std::atoi(value.c_str() + colon + 1);
  std::strcpy(page.host, "node17");
  std::strcpy(entry.path, "step 7 > language.layers.3");
  std::strcpy(entry.instruction, "linear x -> y");
  const std::string path = planwright::RecorderPath(value.substr(0, colon), page.rank);
  mkdir(path.substr(0, path.rfind('/')).c_str(), 0755);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&page), sizeof page);
}

void WriteChild(const std::string& file) {
  const int pid = fork();
  if (pid == 0) {
    signal(planwright::kEndSignal, SIG_IGN);
    sleep(3600);
    _exit(0);
  }
  std::ofstream(file) << pid;
}

// The state letter of /proc, such as "S"; empty if there is no such process.
std::string StateOf(const std::string& file) {
  std::string pid, id, name, state;
  std::ifstream(file) >> pid;
  std::ifstream("/proc/" + pid + "/stat") >> id >> name >> state;
  return state;
}

void PrintCores() {
  std::ifstream file("/proc/self/status");
  const std::string name = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) std::cout << "cores " << line.substr(name.size()) << std::endl;
  }
}

std::string all_arguments;
int status_on_end = 0, status_on_usr1 = 0;

void Obey(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string value = name.size() < word.size() ? word.substr(name.size() + 1) : "";
  if (name == "pid") std::ofstream(value) << getpid();
  if (name == "pid_of_rank") std::ofstream(value + std::getenv("RANK")) << getpid();
  if (name == "fail_rank" && value == std::getenv("RANK")) _exit(3);
  if (name == "child") WriteChild(value);
  if (name == "say") std::cout << value << std::endl;
  if (name == "err") std::cerr << value << std::endl;
  if (name == "env")
    std::cout << value << "=" << (std::getenv(value.c_str()) ? std::getenv(value.c_str()) : "(unset)") << std::endl;
  if (name == "cores") PrintCores();
  if (name == "arguments") std::cout << all_arguments << std::endl;
  if (name == "recorder") WriteRecorder(value);
  if (name == "ignore_end") signal(planwright::kEndSignal, SIG_IGN);
  if (name == "on_usr1") status_on_usr1 = std::stoi(value), signal(SIGUSR1, [](int) { _exit(status_on_usr1); });
  if (name == "unblock") {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &usr1, nullptr);
  }
  if (name == "thread") std::thread([] { pause(); }).detach();
  if (name == "lie") {
    const auto request = planwright::ReadForkRequest(std::getenv(planwright::kForkVariable));
    for (const planwright::ToldRank told : {planwright::ToldRank{99, getpid()}, {-3, getpid()}, {0, 1}}) {
      if (write(request->tell, &told, sizeof told) != sizeof told) _exit(2);
    }
  }
  if (name == "on_end")
    status_on_end = std::stoi(value), signal(planwright::kEndSignal, [](int) { _exit(status_on_end); });
  if (name == "await") Eventually([&] { return std::ifstream(value).peek() != EOF; });
  if (name == "await_stop") Eventually([&] { return StateOf(value) == "T"; });
  if (name == "await_end") Eventually([&] { return StateOf(value).empty(); });
  if (name == "sleep") sleep(3600);
  if (name == "kill") raise(std::stoi(value)), pause();
  if (name == "stop") raise(SIGSTOP);
  if (name == "exit") _exit(std::stoi(value));
}

void ObeyAll(const char* text) {
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) Obey(word);
}

}  // namespace

int main(int argc, char** argv) {
  ObeyAll(std::getenv("FAKE_LOADING"));
  if (const absl::Status status = planwright::BecomeRank(); !status.ok()) {
    std::cerr << status << std::endl;
    return 2;
  }
  for (int i = 1; i < argc; ++i) all_arguments += std::string(" ") + argv[i];
  const char* rank = std::getenv("RANK");
  const char* told = rank ? std::getenv((std::string("FAKE_RANK_") + rank).c_str()) : nullptr;
  ObeyAll(told);
  if (!told) {
    for (int i = 1; i < argc; ++i) Obey(argv[i]);
  }
}
