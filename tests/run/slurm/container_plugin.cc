// A plugin of Slurm (SPANK) that runs the tasks of a step in a container, by the two options of srun that pyxis has:
//   --container-image=FOLDER                  what the container has besides: a folder, as of an unpacked image
//   --container-mounts=FROM:TO[:ro],...       what it has of the node
// It needs no root: the task enters a user namespace and a mount namespace of its own, binds what is asked for, and
// changes its root. A path that is neither mounted nor in the image is not there. Its line in plugstack.conf names a
// folder, in which it makes the roots.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
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

char image_option[] = "container-image", image_form[] = "FOLDER", image_help[] = "what the container has";
char mounts_option[] = "container-mounts", mounts_form[] = "FROM:TO[:ro],...", mounts_help[] = "and of the node";
spank_option options[] = {{image_option, image_form, image_help, 1, 0, TakeImage},
                          {mounts_option, mounts_form, mounts_help, 1, 0, TakeMounts}};

int Fail(const std::string& what) {
  slurm_error("container: %s: %s", what.c_str(), std::strerror(errno));
  return -1;
}

bool Put(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
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

// Makes what `from` is at `to` in the root, and binds it there.
int Bind(const std::string& root, const std::string& from, const std::string& to, bool read_only) {
  std::error_code error;
  const std::string target = root + to;
  if (!fs::exists(from, error)) return errno = ENOENT, Fail("no " + from + " to mount");
  fs::create_directories(fs::is_directory(from, error) ? fs::path(target) : fs::path(target).parent_path(), error);
  if (!fs::is_directory(from, error)) close(open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  if (mount(from.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return Fail("mount " + from);
  if (!read_only) return 0;
  // Flags that a mount has may not be taken away in a user namespace.
  for (const unsigned long kept : {0UL, 0UL | MS_NODEV, 0UL | MS_NOSUID | MS_NODEV}) {
    if (mount(nullptr, target.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | kept, nullptr) == 0) return 0;
  }
  return Fail("read-only mount " + from);
}

int BindAll(const std::string& root) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(image, error)) {
    const std::string name = "/" + entry.path().filename().string();
    if (entry.is_symlink(error)) {
      fs::copy_symlink(entry.path(), root + name, error);  // /lib of a merged /usr
    } else if (Bind(root, entry.path(), name, true) != 0) {
      return -1;
    }
  }
  for (const char* of_kernel : {"/proc", "/dev"}) {
    if (Bind(root, of_kernel, of_kernel, false) != 0) return -1;
  }
  std::istringstream list(mounts);
  for (std::string one; std::getline(list, one, ',');) {
    std::istringstream parts(one);
    std::string from, to, flags;
    std::getline(parts, from, ':'), std::getline(parts, to, ':'), std::getline(parts, flags);
    if (Bind(root, from, to, flags == "ro") != 0) return -1;
  }
  return 0;
}

}  // namespace

int slurm_spank_init(spank_t spank, int, char**) {
  for (spank_option& option : options) {
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) return -1;
  }
  return 0;
}

// As the user of the job, before its program is executed.
int slurm_spank_task_init(spank_t, int count, char** arguments) {
  if (image.empty()) return 0;
  std::string root = std::string(count > 0 ? arguments[0] : "/tmp") + "/root-XXXXXX";
  if (!EnterNamespaces()) return Fail("namespaces");
  // What mounts are at is made in a file system of its own, not in the image.
  if (mkdtemp(root.data()) == nullptr || mount("container", root.c_str(), "tmpfs", 0, nullptr) != 0)
    return Fail("root " + root);
  if (BindAll(root) != 0) return -1;
  return chroot(root.c_str()) == 0 && chdir("/") == 0 ? 0 : Fail("chroot " + root);
}
