#include "tests/end_to_end/processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace planwright::testing {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool IsZombie(const std::filesystem::path& process) {
  const std::string stat = ReadAll(process / "stat");
  const size_t after_name = stat.rfind(')');
  return after_name == std::string::npos || stat[after_name + 2] == 'Z';
}

}  // namespace

Started StartProgram(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                     const std::string& output) {
  std::vector<std::string> words = argv, variables;
  for (char** variable = environ; *variable; ++variable) variables.push_back(*variable);
  variables.insert(variables.end(), environment.begin(), environment.end());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  Started started = {-1, output};
  std::vector<char*> arguments = Pointers(words), settings = Pointers(variables);
  if (posix_spawn(&started.pid, words[0].c_str(), &files, nullptr, arguments.data(), settings.data()) != 0)
    started.pid = -1;
  posix_spawn_file_actions_destroy(&files);
  return started;
}

std::optional<int> WaitFor(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), isdigit) || std::stoi(name) == getpid()) continue;
    std::string line = ReadAll(entry.path() / "cmdline");
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (line.find(text) != std::string::npos && !IsZombie(entry.path())) found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace planwright::testing
