// Frames and proofs: what they are, byte by byte, and that no bytes at all break the reader.
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/escaping.h"
#include "planner/wire/connection/proof.h"
#include "planner/wire/rendezvous/store_protocol.h"

namespace planwright {
namespace {

const StoreMessage kMessage = {3, -2, {"key", "", std::string("a\0b", 3)}};

TEST(Frame, HasTheBytesOfTheDocumentation) {
  const std::string frame = *FrameOf({1, 258, {"k", "vw"}});
  EXPECT_EQ(absl::BytesToHexString(frame),
            "18000000"
            "01"
            "0201000000000000"
            "02000000"
            "01000000"
            "6b"
            "02000000"
            "7677");
}

TEST(Frame, ComesBack) {
  std::string bytes = *FrameOf(kMessage) + *FrameOf({9, INT64_MIN, {}});
  EXPECT_EQ(**TakeFrame(bytes), kMessage);
  EXPECT_EQ(**TakeFrame(bytes), (StoreMessage{9, INT64_MIN, {}}));
  EXPECT_TRUE(bytes.empty());
  EXPECT_EQ(*TakeFrame(bytes), std::nullopt);
}

TEST(Frame, APartOfOneIsNoMessageYet) {
  const std::string frame = *FrameOf(kMessage);
  for (size_t size = 0; size < frame.size(); ++size) {
    std::string part = frame.substr(0, size);
    const auto taken = TakeFrame(part);
    ASSERT_TRUE(taken.ok()) << size;
    EXPECT_EQ(*taken, std::nullopt) << size;
    EXPECT_EQ(part.size(), size);
  }
}

TEST(Frame, LengthsThatCannotBeAreRefusedAtOnce) {
  for (const char* hex : {"00000000", "0c000000", "01000002", "ffffffff",
                          "0d000000"
                          "01"
                          "0000000000000000"
                          "ffffffff",  // fields without bytes
                          "11000000"
                          "01"
                          "0000000000000000"
                          "01000000"
                          "01000000",  // a field longer than the rest
                          "11000000"
                          "01"
                          "0000000000000000"
                          "01000000"
                          "ffffffff",
                          "11000000"
                          "01"
                          "0000000000000000"
                          "00000000"
                          "00000000"}) {  // bytes after the last field
    std::string bytes = absl::HexStringToBytes(hex);
    EXPECT_FALSE(TakeFrame(bytes).ok()) << hex;
  }
}

TEST(Frame, AnyBytesAreAMessageOrAnError) {
  std::mt19937 random(7);
  const std::string frame = *FrameOf(kMessage);
  int messages = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string bytes = frame;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    auto taken = TakeFrame(bytes);
    if (!taken.ok() || !*taken) continue;
    ++messages;
    EXPECT_LE((*taken)->fields.size(), frame.size() / 4);
  }
  EXPECT_GT(messages, 0);
}

TEST(Frame, AMessageThatIsTooLongIsRefused) {
  EXPECT_TRUE(FrameOf({1, 0, {std::string(kMostFrameBytes - 17, 'x')}}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(FrameOf({1, 0, {std::string(kMostFrameBytes - 16, 'x')}}).status()));
}

}  // namespace
}  // namespace planwright
