// A slow wire for tests: packets that the kernel routes into a TUN device come out of it again some time later, in
// their order. For kernels without netem (tests/run/network/nodes). Needs the right to make network devices.
//
//   delayed_link DEVICE MICROSECONDS
//
// Makes the device in the network namespace of the caller, prints "ready", and goes on until it is killed; the device
// goes with it. Ends with 1 and a line on standard error if the device cannot be made.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Packet {
  Clock::time_point due;
  std::vector<char> bytes;
};

// What more waits than this is lost, as on a wire whose router is full: a second of a gigabit.
constexpr size_t kMostBytes = size_t{128} << 20;
constexpr size_t kLongestPacket = 65536;

int Fail(const std::string& what) {
  std::cerr << "delayed_link: " << what << ": " << std::strerror(errno) << "\n";
  return 1;
}

// The device as a file: each read is a packet that was routed into it, each write one that comes out.
int OpenDevice(const char* name) {
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) return -1;
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(device, TUNSETIFF, &request) == 0) return device;
  close(device);
  return -1;
}

class Link {
 public:
  Link(int device, std::chrono::microseconds delay) : device_(device), delay_(delay) {}

  // Until the device fails.
  void Carry() {
    for (;;) {
      WaitForMore();
      if (!Take()) return;
      Give();
    }
  }

 private:
  // A packet has come, or the first one is due.
  void WaitForMore() {
    pollfd file{.fd = device_, .events = POLLIN, .revents = 0};
    timespec left{};
    if (!waiting_.empty()) {
      const auto time = std::max(Clock::duration(0), waiting_.front().due - Clock::now());
      const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
      left = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
    }
    ppoll(&file, 1, waiting_.empty() ? nullptr : &left, nullptr);
  }

  bool Take() {
    for (;;) {
      const ssize_t size = read(device_, buffer_.data(), buffer_.size());
      if (size < 0) return errno == EAGAIN || errno == EINTR;
      if (bytes_ + static_cast<size_t>(size) > kMostBytes) continue;
      bytes_ += static_cast<size_t>(size);
      waiting_.push_back({Clock::now() + delay_, {buffer_.begin(), buffer_.begin() + size}});
    }
  }

  void Give() {
    for (; !waiting_.empty() && waiting_.front().due <= Clock::now(); waiting_.pop_front()) {
      const std::vector<char>& bytes = waiting_.front().bytes;
      // A packet that the kernel does not take is lost, as packets may be.
      [[maybe_unused]] const ssize_t written = write(device_, bytes.data(), bytes.size());
      bytes_ -= bytes.size();
    }
  }

  const int device_;
  const std::chrono::microseconds delay_;
  std::deque<Packet> waiting_;  // in order: all take the same time
  size_t bytes_ = 0;            // of them
  std::array<char, kLongestPacket> buffer_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::atol(argv[2]) <= 0) {
    std::cerr << "usage: delayed_link DEVICE MICROSECONDS\n";
    return 2;
  }
  const int device = OpenDevice(argv[1]);
  if (device < 0) return Fail(std::string("cannot make the device ") + argv[1]);
  // A wire does not wait for a core. Without the right to this it is less exact.
  prctl(PR_SET_TIMERSLACK, 1);
  mlockall(MCL_CURRENT | MCL_FUTURE);
  const sched_param first{.sched_priority = 10};
  sched_setscheduler(0, SCHED_FIFO, &first);
  std::cout << "ready" << std::endl;
  Link link(device, std::chrono::microseconds(std::atol(argv[2])));
  link.Carry();
  return Fail(std::string("the device ") + argv[1] + " failed");
}
