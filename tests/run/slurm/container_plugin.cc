// A plugin of Slurm (SPANK) that runs the tasks of a step in a container, by two options of srun that pyxis has:
//   --container-image=FILE                    what the container has besides: a squashfs file
//   --container-mounts=FROM:TO[:ro],...       what it has of the node
// It needs no root: a task unpacks the image, enters a user namespace and a mount namespace of its own, binds what is
// asked for, and changes its root. Its line in plugstack.conf names a folder, in which it makes the roots.
// What a job may stumble over is as with pyxis 0.24.0 and enroot 4.1.2: an image needs /bin/sh; nothing can be written
// but to /tmp, which is empty, and to mounts; the place of a mount is made, unless a read-only mount is there;
// variables of the image go before those of the job, and an image of PyTorch sets ranks of its own; the language is
// taken away; a task begins in the home folder.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

extern "C" {
#include <slurm/spank.h>
extern const char plugin_name[], plugin_type[];
extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(container, 1)
}

namespace {

namespace fs = std::filesystem;

std::string image, mounts;

int TakeImage(int, const char* value, int) {
  image = value;
  return 0;
}
int TakeMounts(int, const char* value, int) {
  mounts = value;
  return 0;
}

char image_option[] = "container-image", image_form[] = "FILE", image_help[] = "what the container has";
char mounts_option[] = "container-mounts", mounts_form[] = "FROM:TO[:ro],...", mounts_help[] = "and of the node";
spank_option options[] = {{image_option, image_form, image_help, 1, 0, TakeImage},
                          {mounts_option, mounts_form, mounts_help, 1, 0, TakeMounts}};

int Fail(const std::string& what) {
  slurm_error("container: %s: %s", what.c_str(), std::strerror(errno));
  return -1;
}

// The root of a task, which no other one has.
std::string RootOf(spank_t spank, int count, char** arguments) {
  uint32_t job = 0, step = 0, task = 0;
  spank_get_item(spank, S_JOB_ID, &job);
  spank_get_item(spank, S_JOB_STEPID, &step);
  spank_get_item(spank, S_TASK_GLOBAL_ID, &task);
  return std::string(count > 0 ? arguments[0] : "/tmp") + "/" + std::to_string(job) + "." + std::to_string(step) + "." +
         std::to_string(task);
}

bool Unpacked(const std::string& root) {
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    execlp("unsquashfs", "unsquashfs", "-no-progress", "-processors", "1", "-d", root.c_str(), image.c_str(), nullptr);
    _exit(127);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool Put(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return good;
}

// The user's own numbers stay the same; nothing is above the user.
bool EnterNamespaces() {
  const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  Put("/proc/self/setgroups", "deny");
  return Put("/proc/self/uid_map", user + " " + user + " 1") && Put("/proc/self/gid_map", group + " " + group + " 1") &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Flags that a mount has may not be taken away in a user namespace.
bool MakeReadOnly(const std::string& at) {
  for (const unsigned long kept : {0UL, 0UL | MS_NODEV, 0UL | MS_NOSUID | MS_NODEV}) {
    if (mount(nullptr, at.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | kept, nullptr) == 0) return true;
  }
  return false;
}

// Makes what `from` is at `to` in the root, and binds it there.
int Bind(const std::string& root, const std::string& from, const std::string& to, bool read_only) {
  std::error_code error;
  const std::string target = root + to;
  if (!fs::exists(from, error)) return errno = ENOENT, Fail("source path does not exist: " + from);
  fs::create_directories(fs::is_directory(from, error) ? fs::path(target) : fs::path(target).parent_path(), error);
  if (error) return errno = error.value(), Fail("failed to create " + target);
  if (!fs::is_directory(from, error)) close(open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  if (mount(from.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return Fail("mount " + from);
  if (!read_only) return 0;
  return MakeReadOnly(target) ? 0 : Fail("read-only mount " + from);
}

int BindAll(const std::string& root) {
  for (const char* of_kernel : {"/proc", "/dev", "/sys", "/etc/hosts"}) {
    if (Bind(root, of_kernel, of_kernel, false) != 0) return -1;
  }
  std::error_code error;
  fs::create_directory(root + "/tmp", error);
  if (mount("tmpfs", (root + "/tmp").c_str(), "tmpfs", 0, nullptr) != 0) return Fail("/tmp");
  std::istringstream list(mounts);
  for (std::string one; std::getline(list, one, ',');) {
    std::istringstream parts(one);
    std::string from, to, flags;
    std::getline(parts, from, ':'), std::getline(parts, to, ':'), std::getline(parts, flags);
    if (Bind(root, from, to, flags == "ro") != 0) return -1;
  }
  return MakeReadOnly(root) ? 0 : Fail("read-only root");
}

// What the task has of its image, and what of the job it has not.
void SetVariables(spank_t spank, const std::string& home) {
  for (const char* language : {"LANG", "LANGUAGE", "LC_ALL"}) spank_unsetenv(spank, language);
  spank_setenv(spank, "PATH", "/usr/bin:/bin", 1);
  spank_setenv(spank, "HOME", home.c_str(), 1);
  bool of_pytorch = false;
  std::ifstream of_image("/etc/environment");
  for (std::string line; std::getline(of_image, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    of_pytorch |= line.starts_with("PYTORCH_VERSION=");
    spank_setenv(spank, line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
  }
  if (!of_pytorch) return;
  char value[64];
  for (const auto& [from, to] : {std::pair("SLURM_PROCID", "RANK"), std::pair("SLURM_LOCALID", "LOCAL_RANK"),
                                 std::pair("SLURM_NTASKS", "WORLD_SIZE")}) {
    if (spank_getenv(spank, from, value, sizeof(value)) == ESPANK_SUCCESS) spank_setenv(spank, to, value, 1);
  }
  spank_setenv(spank, "MASTER_ADDR", "the-first-node", 1);
  spank_setenv(spank, "MASTER_PORT", "61000", 1);
}

}  // namespace

int slurm_spank_init(spank_t spank, int, char**) {
  for (spank_option& option : options) {
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) return -1;
  }
  return 0;
}

// As the user of the job, before its program is executed.
int slurm_spank_task_init(spank_t spank, int count, char** arguments) {
  if (image.empty()) return 0;
  const std::string root = RootOf(spank, count, arguments), home = "/home_of_task";
  if (!Unpacked(root)) return Fail("invalid image " + image);
  if (!EnterNamespaces()) return Fail("namespaces");
  // Mounts are on one file system, of which the task has no other part.
  if (mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr) != 0) return Fail("root " + root);
  std::error_code error;
  fs::create_directories(root + home, error);
  if (BindAll(root) != 0) return -1;
  if (chroot(root.c_str()) != 0 || chdir(home.c_str()) != 0) return Fail("chroot " + root);
  SetVariables(spank, home);
  return std::system("exit 0") == 0 ? 0 : Fail("failed to execute: /bin/sh");
}

int slurm_spank_task_exit(spank_t spank, int count, char** arguments) {
  std::error_code error;
  if (!image.empty()) fs::remove_all(RootOf(spank, count, arguments), error);
  return 0;
}
