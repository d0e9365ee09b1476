#include "planner/wire/rendezvous/interface_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(InterfaceAddress, IsFound) { EXPECT_EQ(*InterfaceAddress("lo"), "127.0.0.1"); }

TEST(InterfaceAddress, AWrongNameIsAnErrorWithThoseThatThereAre) {
  for (const char* name : {"", "l", "lo0", "nosuch0", "127.0.0.1"}) {
    const absl::Status status = InterfaceAddress(name).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'" + std::string(name) + "'"),
                                                     HasSubstr("this machine has "), HasSubstr("lo (127.0.0.1)")));
  }
}

}  // namespace
}  // namespace planwright
