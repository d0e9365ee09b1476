// Whatever lies in the place of a file: opening it does not wait, reading it ends, and the error has the path.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "planner/base/files/file_io.h"
#include "planner/base/files/log_file.h"
#include "planner/base/json/json_limits.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PlainFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_files_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) const { std::ofstream(PathOf(name)) << bytes; }

  std::string folder_;
};

std::span<std::byte> Room(std::string& bytes) { return std::as_writable_bytes(std::span(bytes)); }

TEST_F(PlainFileTest, NothingElseIsOpened) {
  ASSERT_EQ(mkfifo(PathOf("pipe").c_str(), 0600), 0);
  fs::create_directories(PathOf("folder"));
  fs::create_symlink("/dev/zero", PathOf("endless"));
  fs::create_symlink(PathOf("pipe"), PathOf("link"));
  fs::create_symlink(PathOf("nothing"), PathOf("dangling"));
  fs::create_symlink(PathOf("circle"), PathOf("circle"));
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  PathOf("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  struct Case {
    const char* name;
    const char* why;
  };
  for (const Case& one :
       {Case{"pipe", "it is not a plain file"}, Case{"endless", "it is not a plain file"},
        Case{"link", "it is not a plain file"}, Case{"folder", "Is a directory"},
        Case{"dangling", "No such file or directory"}, Case{"circle", "Too many levels of symbolic links"},
        Case{"socket", "No such device or address"}, Case{"none", "No such file or directory"}}) {
    const std::string path = PathOf(one.name);
    const absl::Status states[] = {PlainFile::Open(path).status(), SafetensorsFile::Open(path).status(),
                                   ReadWholeFile(path, SIZE_MAX).status()};
    for (const absl::Status& status : states) {
      EXPECT_FALSE(status.ok()) << path;
      EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path), HasSubstr(one.why)));
    }
    const std::string name = one.name;
    if (name == "none" || name == "dangling" || name == "folder") continue;  // can be made, or fails otherwise
    const absl::StatusOr<int> written = OpenPlainFile(path, O_WRONLY | O_CREAT);
    EXPECT_FALSE(written.ok()) << path;
    EXPECT_THAT(std::string(written.status().message()), HasSubstr("cannot write " + path)) << path;
  }
  close(listener);
}

TEST_F(PlainFileTest, WithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "permissions do not bind the superuser";
  Write("secret", "bytes");
  fs::permissions(PathOf("secret"), fs::perms::none);
  EXPECT_THAT(std::string(PlainFile::Open(PathOf("secret")).status().message()), HasSubstr("Permission denied"));
}

// Mapped memory would end the process here.
TEST_F(PlainFileTest, AFileThatIsCutOffWhileItIsRead) {
  Write("file", std::string(10'000, 'x'));
  const absl::StatusOr<PlainFile> file = PlainFile::Open(PathOf("file"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->bytes(), 10'000);
  std::string bytes(100, '\0');
  ASSERT_TRUE(file->Read(9'900, Room(bytes)).ok());
  EXPECT_EQ(bytes, std::string(100, 'x'));
  fs::resize_file(PathOf("file"), 9'950);
  const absl::Status cut = file->Read(9'900, Room(bytes));
  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(cut.message()), AllOf(HasSubstr(PathOf("file")), HasSubstr("it ends at byte 9950")));
  fs::resize_file(PathOf("file"), 500);  // far before what is read
  EXPECT_THAT(std::string(file->Read(9'900, Room(bytes)).message()),
              HasSubstr("it ends at byte 500, and byte 9900 is wanted"));
}

// Whoever can put a link into a run directory must not have a file outside of it overwritten.
TEST_F(PlainFileTest, ALinkToAnotherFileIsNotWrittenThrough) {
  Write("outside", "precious");
  fs::create_symlink(PathOf("outside"), PathOf("link"));
  fs::create_symlink(PathOf("nothing"), PathOf("dangling"));
  for (const char* name : {"link", "dangling"}) {
    const std::string path = PathOf(name), why = "cannot write " + path + ": it is a symbolic link";
    for (const int flags : {O_WRONLY | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC, O_RDWR | O_CREAT | O_APPEND}) {
      EXPECT_EQ(OpenPlainFile(path, flags).status().message(), why);
      EXPECT_EQ(OpenToWrite(AT_FDCWD, path, flags), -1);
      EXPECT_EQ(errno, ELOOP);
    }
    EXPECT_EQ(WriteFileAtomically(path, "bytes").message(), why);
    LogFile log(folder_, name);
    EXPECT_EQ(log.Open().message(), why);
    EXPECT_TRUE(fs::is_symlink(path));
  }
  EXPECT_EQ(*ReadWholeFile(PathOf("link"), SIZE_MAX), "precious");
  EXPECT_FALSE(fs::exists(PathOf("nothing")));
  // A folder may be a link, as when checkpoints go to another disk.
  fs::create_directories(PathOf("elsewhere"));
  fs::create_symlink("elsewhere", PathOf("folder"));
  EXPECT_TRUE(WriteFileAtomically(PathOf("folder/file"), "bytes").ok());
  EXPECT_EQ(*ReadWholeFile(PathOf("elsewhere/file"), SIZE_MAX), "bytes");
  // Nothing is lost in a device, and a file that the user names is the one to which his link leads.
  fs::create_symlink("/dev/null", PathOf("device"));
  EXPECT_TRUE(WriteFileAtomically(PathOf("device"), "bytes").ok());
  EXPECT_TRUE(WriteNamedFile(PathOf("link"), "new").ok());
  EXPECT_EQ(*ReadWholeFile(PathOf("outside"), SIZE_MAX), "new");
  EXPECT_TRUE(CheckNamedFile(PathOf("dangling")).ok());
  EXPECT_TRUE(WriteNamedFile(PathOf("dangling"), "made").ok());
  EXPECT_EQ(*ReadWholeFile(PathOf("dangling"), SIZE_MAX), "made");
}

TEST_F(PlainFileTest, WhetherAFileCanBeWrittenIsKnownBefore) {
  Write("file", "kept");
  const auto files = [&] { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); };
  const auto before = files();
  for (const std::string& good : {PathOf("file"), PathOf("new"), std::string("/dev/null")})
    EXPECT_TRUE(CheckNamedFile(good).ok()) << good;
  for (const std::string& bad : {folder_, PathOf("no/such/folder"), PathOf("file/below"), PathOf("slash/")}) {
    const absl::Status status = CheckNamedFile(bad);
    EXPECT_EQ(status.message(), WriteNamedFile(bad, "bytes").message()) << "the same problem";
    EXPECT_FALSE(status.ok()) << bad;
  }
  EXPECT_EQ(files(), before) << "nothing is left";
  EXPECT_EQ(*ReadWholeFile(PathOf("file"), SIZE_MAX), "kept");
}

// The device is always full. A plan is written into it, since /dev/stdout may be such a device.
TEST_F(PlainFileTest, AFullDiskIsToldFromOtherFailures) {
  EXPECT_EQ(WriteFileAtomically("/dev/full", "bytes").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteFileAtomically(PathOf("no/such/folder"), "bytes").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(WriteFailed("writing", EDQUOT).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteFailed("writing", EACCES).code(), absl::StatusCode::kUnavailable);
}

TEST_F(PlainFileTest, IsCutByANewFile) {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += std::to_string(i) + "\n";
  Write("file", bytes);
  fs::create_symlink(PathOf("file"), PathOf("link"));
  const absl::StatusOr<PlainFile> open = PlainFile::Open(PathOf("file"));
  EXPECT_FALSE(CutFileAtomically(PathOf("link"), 1'500'000, "end\n").ok()) << "a link is not followed";
  ASSERT_EQ(CutFileAtomically(PathOf("file"), 1'500'000, "end\n"), absl::OkStatus());
  EXPECT_EQ(ReadWholeFile(PathOf("file"), SIZE_MAX).value(), bytes.substr(0, 1'500'000) + "end\n");
  EXPECT_TRUE(fs::is_symlink(PathOf("link")));
  std::string old(bytes.size(), '\0');
  EXPECT_EQ(open->Read(0, Room(old)), absl::OkStatus()) << "who has the old file open keeps it";
  EXPECT_EQ(old, bytes);
  ASSERT_EQ(CutFileAtomically(PathOf("file"), 0), absl::OkStatus());
  EXPECT_EQ(fs::file_size(PathOf("file")), 0U);
  EXPECT_FALSE(CutFileAtomically(PathOf("file"), 1).ok()) << "it is shorter";
  EXPECT_TRUE(absl::IsNotFound(CutFileAtomically(PathOf("none"), 0)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2) << "nothing is left beside it";
}

}  // namespace
}  // namespace planwright
