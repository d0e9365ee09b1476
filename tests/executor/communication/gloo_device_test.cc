// A thread of Gloo that finds a lock taken lets go of its core before it looks at its sockets again.
#include "executor/communication/gloo_device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace planwright::executor {
namespace {

// How often this thread has waited for something: a thread that only lost its core is not counted.
int64_t Waits() {
  rusage usage;
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

class SocketWithData : public ::testing::Test {
 protected:
  void SetUp() override {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = data_}};
    ASSERT_EQ(epoll_ctl(epoll_, EPOLL_CTL_ADD, data_, &event), 0);
  }
  void TearDown() override { close(epoll_), close(data_); }
  void Wait() {
    epoll_event event;
    EXPECT_EQ(epoll_wait(epoll_, &event, 1, -1), 1);
  }
  // Tries a lock that another thread holds.
  static void BeRefused() {
    std::mutex mutex;
    std::promise<void> taken, tried;
    std::thread holder([&] {
      const std::lock_guard lock(mutex);
      taken.set_value();
      tried.get_future().wait();
    });
    taken.get_future().wait();
    EXPECT_FALSE(mutex.try_lock());
    tried.set_value();
    holder.join();
  }

 private:
  const int epoll_ = epoll_create1(0), data_ = eventfd(1, 0);
};

TEST_F(SocketWithData, IsSeenAtOnce) {
  std::mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
  const int64_t before = Waits();
  for (int i = 0; i < 100; ++i) Wait();
  EXPECT_EQ(Waits(), before);
}

TEST_F(SocketWithData, IsSeenAfterAMomentIfALockWasRefused) {
  BeRefused();
  const int64_t before = Waits();
  Wait();
  EXPECT_EQ(Waits(), before + 1);
  for (int i = 0; i < 100; ++i) Wait();
  EXPECT_EQ(Waits(), before + 1);
}

// Gloo in LibTorch calls the functions of this program, not those of the C library.
TEST(Gloo, CallsTheFunctionsOfTheProgram) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "epoll_wait"), reinterpret_cast<void*>(&epoll_wait));
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "pthread_mutex_trylock"), reinterpret_cast<void*>(&pthread_mutex_trylock));
  Dl_info program, library;
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "epoll_wait"), &program), 0);
  ASSERT_NE(dladdr(dlsym(RTLD_NEXT, "epoll_wait"), &library), 0);
  EXPECT_NE(program.dli_fbase, library.dli_fbase);
}

TEST(Gloo, CommunicatorsOfAnAddressShareADevice) {
  const auto device = GlooDeviceAt("127.0.0.1");
  EXPECT_EQ(GlooDeviceAt("127.0.0.1"), device);
  EXPECT_NE(GlooDeviceAt("127.0.0.2"), device);
}

}  // namespace
}  // namespace planwright::executor
