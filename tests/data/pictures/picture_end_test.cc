// Files that may have been cut off, by their last bytes.
#include "planner/data/pictures/picture_end.h"

#include <gtest/gtest.h>

#include "planner/data/pictures/decode_picture.h"
#include "tests/data/pictures/golden.h"

namespace planwright {
namespace {

bool MayBeCut(const std::string& file) {
  const size_t end = std::min<size_t>(file.size(), kPictureEnd);
  return MayBeCut(ReadPictureFormat(file).value(), file.substr(0, kPictureBegin), file.substr(file.size() - end),
                  static_cast<int64_t>(file.size()));
}

// No file that is read is taken for one that may be cut, and no cut file for a whole one: but of a PNG that lacks all
// behind its pixels, which are whole.
TEST(PictureEnd, IsFoundWhereverFilesAreCut) {
  int files = 0, decoded = 0;
  for (const auto& [name, golden] : ReadGoldenPixels()) {
    const std::string file = GoldenPicture(name);
    EXPECT_FALSE(MayBeCut(file)) << name;
    for (size_t bytes = 32; bytes < file.size(); bytes += 1 + bytes / 16) {
      const std::string cut = file.substr(0, bytes);
      if (!ReadPictureSize(cut).ok()) continue;  // its header is cut: the index says so
      if (CheckPicture(cut).ok()) {
        EXPECT_TRUE(name.ends_with(".png") && bytes + 12 >= file.size()) << name << bytes;
        ++decoded;
        continue;
      }
      EXPECT_TRUE(MayBeCut(cut)) << name << " cut to " << bytes;
      ++files;
    }
    EXPECT_FALSE(MayBeCut(file + std::string(200, 'x'))) << name << ": other bytes may come behind an end";
  }
  EXPECT_GT(files, 1000);
  EXPECT_LT(decoded, 60);
}

// A copy that was preallocated and never finished.
TEST(PictureEnd, IsFoundWhereZerosAreInItsPlace) {
  for (const std::string name : {"444.jpg", "progressive_420.jpg", "rgb.png"}) {
    std::string file = GoldenPicture(name);
    std::fill(file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2), file.end(), '\0');
    EXPECT_TRUE(MayBeCut(file)) << name;
    EXPECT_FALSE(CheckPicture(file).ok()) << name;
  }
}

}  // namespace
}  // namespace planwright
