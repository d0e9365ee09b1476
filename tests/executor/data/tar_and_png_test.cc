#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/data/images.h"
#include "executor/data/tar_file.h"
#include "tests/executor/data/shard_files.h"

namespace planwright::executor {
namespace {

using ::testing::HasSubstr;

TEST(TarFile, ReadsMembersInOrder) {
  const std::string long_text(1300, 'x');
  const auto tar =
      TarFile::Open(WriteFile("plain.tar", TarMemberOf("d/", "", '5') + TarMemberOf("d/b.txt", long_text) +
                                               TarMemberOf("a.txt", "") + TarMemberOf("c", "cc") + kTarEnd));
  ASSERT_TRUE(tar.ok()) << tar.status();
  ASSERT_EQ(tar->members().size(), 3u);
  EXPECT_EQ(tar->members()[0].name, "d/b.txt");
  EXPECT_EQ(*tar->Read(tar->members()[0]), long_text);
  EXPECT_EQ(*tar->Read(tar->members()[0], 3), "xxx");
  EXPECT_EQ(*tar->Read(tar->members()[1]), "");
  EXPECT_EQ(*tar->Read(tar->members()[2]), "cc");
}

TEST(TarFile, PaxHeadersNameTheNextMember) {
  const std::string name(150, 'n'), record = "160 path=" + name + "\n";
  ASSERT_EQ(record.size(), 160u);
  const auto tar =
      TarFile::Open(WriteFile("pax.tar", TarMemberOf("g", "12 comment=\n", 'g') + TarMemberOf("x", record, 'x') +
                                             TarMemberOf("short", "1") + TarMemberOf("next", "2") + kTarEnd));
  ASSERT_TRUE(tar.ok()) << tar.status();
  ASSERT_EQ(tar->members().size(), 2u);
  EXPECT_EQ(tar->members()[0].name, name);
  EXPECT_EQ(tar->members()[1].name, "next");
}

TEST(TarFile, RefusesWhatIsUnsafeOrBroken) {
  std::string bad_sum = TarMemberOf("a", "");
  bad_sum[0] = 'b';
  const std::vector<std::pair<std::string, std::string>> cases = {
      {TarMemberOf("/etc/x", "") + kTarEnd, "absolute"},
      {TarMemberOf("a/../../x", "") + kTarEnd, "leaves the folder"},
      {TarMemberOf("..", "") + kTarEnd, "leaves the folder"},
      {TarMemberOf("", "") + kTarEnd, "no name"},
      {TarMemberOf("x", "20 path=/etc/passwd\n", 'x') + TarMemberOf("a", "") + kTarEnd, "absolute"},
      {TarMemberOf("link", "", '2') + kTarEnd, "type '2'"},
      {TarMemberOf("link", "", '1') + kTarEnd, "type '1'"},
      {TarMemberOf("long", "name", 'L') + kTarEnd, "type 'L'"},
      {TarMemberOf("a", "1", '0', 5000) + kTarEnd, "beyond the archive"},
      {TarMemberOf("x", "25 size=9000000000000000\n", 'x') + TarMemberOf("a", "") + kTarEnd, "beyond the archive"},
      {TarMemberOf("x", "99 path=a\n", 'x') + TarMemberOf("a", "") + kTarEnd, "not pax"},
      {TarMemberOf("x", "10 path=a\n", 'g') + TarMemberOf("a", "") + kTarEnd, "global"},
      {TarMemberOf("a", ""), "end mark"},
      {bad_sum + kTarEnd, "checksum"},
      {std::string(600, 'z'), "ustar"}};
  for (const auto& [contents, message] : cases) {
    const absl::Status status = TarFile::Open(WriteFile("bad.tar", contents)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("bad.tar"));
  }
  EXPECT_EQ(TarFile::Open("none.tar").status().code(), absl::StatusCode::kNotFound);
}

TEST(Png, DecodesWithWhiteBehindAlpha) {
  const std::string file = PngOf(2, 1, {255, 0, 10, 255, 100, 200, 0, 51});
  const auto size = ReadPngSize(file.substr(0, kPngHeaderBytes));
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->width, 2);
  EXPECT_EQ(size->height, 1);
  const auto pixels = DecodePng(file);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  const std::vector<double> expected = {255, 0, 10, 0.2 * 100 + 0.8 * 255, 0.2 * 200 + 0.8 * 255, 0.8 * 255};
  ASSERT_EQ(pixels->values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(pixels->values[i], expected[i], 1e-9) << i;
}

TEST(Png, RefusesWhatIsNoPng) {
  const std::string file = PngOf(8, 8, std::vector<uint8_t>(256, 7));
  EXPECT_FALSE(DecodePng("GIF89a").ok());
  EXPECT_FALSE(DecodePng(file.substr(0, file.size() / 2)).ok());
  std::string huge = file;
  huge[16] = 0x7f;  // its width
  EXPECT_FALSE(DecodePng(huge).ok());
}

}  // namespace
}  // namespace planwright::executor
