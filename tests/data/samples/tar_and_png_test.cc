#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <sys/resource.h>

#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "planner/data/pictures/patches.h"
#include "planner/data/samples/open_files.h"
#include "planner/data/samples/tar_file.h"
#include "tests/data/samples/shard_files.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

// The regular files of an archive: name and contents.
using Members = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Members> MembersOf(const std::string& path) {
  const absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  if (!file.ok()) return file.status();
  FileWindow window(*file);
  Members members;
  const absl::Status walked = WalkTar(*file, window, [&](const TarMember& member) {
    const absl::StatusOr<std::string> contents = ReadBytesAt(*file, member.offset, member.bytes);
    if (!contents.ok()) return contents.status();
    members.emplace_back(member.name, *contents);
    return absl::OkStatus();
  });
  if (!walked.ok()) return walked;
  return members;
}

TEST(WalkTar, ReadsMembersInOrder) {
  const std::string long_text(1300, 'x');
  const auto tar = MembersOf(WriteFile("plain.tar", TarMemberOf("d/", "", '5') + TarMemberOf("d/b.txt", long_text) +
                                                        TarMemberOf("a.txt", "") + TarMemberOf("c", "cc") + kTarEnd));
  ASSERT_TRUE(tar.ok()) << tar.status();
  EXPECT_EQ(*tar, (Members{{"d/b.txt", long_text}, {"a.txt", ""}, {"c", "cc"}}));
  EXPECT_TRUE(MembersOf(WriteFile("plain.tar", TarMemberOf("a", "") + kTarEnd + std::string(9000, '\0'))).ok());
}

TEST(WalkTar, PaxHeadersNameTheNextMember) {
  const std::string name(150, 'n'), record = "160 path=" + name + "\n";
  ASSERT_EQ(record.size(), 160u);
  const auto tar =
      MembersOf(WriteFile("pax.tar", TarMemberOf("g", "12 comment=\n", 'g') + TarMemberOf("x", record, 'x') +
                                         TarMemberOf("short", "1") + TarMemberOf("next", "2") + kTarEnd));
  ASSERT_TRUE(tar.ok()) << tar.status();
  EXPECT_EQ(*tar, (Members{{name, "1"}, {"next", "2"}}));
}

// What GNU tar writes where nobody says otherwise. It has times in the place of the prefix.
TEST(WalkTar, GnuNamesAreThoseOfTheNextMember) {
  const std::string name(150, 'n');
  std::string timed = TarMemberOf("timed", "3");
  timed.replace(257, 8, "ustar  ", 8);
  timed.replace(345, 11, "14500000000");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(timed[i]);
  char octal[16];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  timed.replace(148, 6, octal);
  const auto tar =
      MembersOf(WriteFile("gnu.tar", TarMemberOf("././@LongLink", name + '\0', 'L') + TarMemberOf("short", "1") +
                                         TarMemberOf("next", "2") + timed + kTarEnd));
  ASSERT_TRUE(tar.ok()) << tar.status();
  EXPECT_EQ(*tar, (Members{{name, "1"}, {"next", "2"}, {"timed", "3"}}));
  EXPECT_THAT(
      std::string(MembersOf(WriteFile("gnu.tar", TarMemberOf("l", "/etc/passwd", 'L') + TarMemberOf("a", "") + kTarEnd))
                      .status()
                      .message()),
      HasSubstr("absolute"));
}

TEST(WalkTar, RefusesWhatIsUnsafeOrBroken) {
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
      {TarMemberOf("long", "name", 'K') + kTarEnd, "type 'K'"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a pointer of Git LFS, not the file"},
      {"\n<!DOCTYPE html><html>404</html>", "a page of HTML, not the file"},
      {TarMemberOf("a", "1", '0', 5000) + kTarEnd, "beyond the archive"},
      {TarMemberOf("x", "25 size=9000000000000000\n", 'x') + TarMemberOf("a", "") + kTarEnd, "beyond the archive"},
      {TarMemberOf("x", "99 path=a\n", 'x') + TarMemberOf("a", "") + kTarEnd, "not pax"},
      {TarMemberOf("x", "10 path=a\n", 'g') + TarMemberOf("a", "") + kTarEnd, "global"},
      {TarMemberOf("x", "22 GNU.sparse.major=1\n", 'x') + TarMemberOf("a", "1\n0\n1\n") + kTarEnd,
       "at byte 1024: member a: a sparse file is not read"},
      {TarMemberOf("x", "22 GNU.sparse.major=1\n", 'g') + TarMemberOf("a", "") + kTarEnd, "global"},
      {TarMemberOf("a", "1") + kTarEnd + std::string(70'000, '\0') + TarMemberOf("b", "2") + kTarEnd,
       "at byte 1024: the archive ends, but more than zeros follow, at byte 72048: archives behind each other"},
      {TarMemberOf("a", "1") + kTarEnd + "x", "more than zeros follow, at byte 2048"},
      {TarMemberOf("a", ""), "end mark"},
      {bad_sum + kTarEnd, "checksum"},
      {std::string(600, 'z'), "ustar"}};
  for (const auto& [contents, message] : cases) {
    const absl::Status status = MembersOf(WriteFile("bad.tar", contents)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("bad.tar"));
  }
  EXPECT_EQ(MembersOf("none.tar").status().code(), absl::StatusCode::kNotFound);
}

TEST(Png, DecodesWithWhiteBehindAlpha) {
  const std::string file = PngOf(2, 1, {255, 0, 10, 255, 100, 200, 0, 51});
  const auto size = ReadPictureSize(file.substr(0, kPngHeaderBytes));
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->width, 2);
  EXPECT_EQ(size->height, 1);
  const auto pixels = DecodePicture<Bilinear>(file, 1, 2);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  const std::vector<double> expected = {255, 0, 10, 0.2 * 100 + 0.8 * 255, 0.2 * 200 + 0.8 * 255, 0.8 * 255};
  ASSERT_EQ(pixels->values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(pixels->values[i], expected[i], 1e-9) << i;
}

TEST(Png, ForBicubicMixedValuesAreRounded) {
  const auto pixels = DecodePicture<Bicubic>(PngOf(2, 1, {255, 0, 10, 255, 100, 200, 1, 100}), 1, 2);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  // 255 - 155 * 100 / 255, 255 - 55 * 100 / 255, 255 - 254 * 100 / 255
  EXPECT_EQ(pixels->values, (std::vector<float>{255, 0, 10, 194, 233, 155}));
}

TEST(Png, RefusesWhatIsNoPng) {
  const std::string file = PngOf(8, 8, std::vector<uint8_t>(256, 7));
  EXPECT_FALSE(DecodePicture<Bilinear>("GIF89a", 8, 8).ok());
  EXPECT_FALSE(DecodePicture<Bilinear>(file.substr(0, file.size() / 2), 8, 8).ok());
  std::string huge = file;
  huge[16] = 0x7f;  // its width
  EXPECT_FALSE(DecodePicture<Bilinear>(huge, 8, 8).ok());
}

// What writes a PNG to the end of `file`, which must outlive it.
std::pair<png_structp, png_infop> PngInto(std::string& file) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(bytes), count);
      },
      nullptr);
  return {png, info};
}

// A PNG of any kind, of random bytes. `gamma`: what it says of its values; 0: nothing.
std::string AnyPng(int64_t width, int64_t height, int color, int depth, bool transparent, bool interlaced, int gamma) {
  std::string file;
  std::mt19937 random(static_cast<unsigned>(width * 31 + color * 7 + depth));
  auto [png, info] = PngInto(file);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth, color,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (gamma != 0) png_set_gAMA_fixed(png, info, gamma);
  if (color == PNG_COLOR_TYPE_PALETTE) {
    png_color colors[256];
    for (png_color& one : colors) {
      one = {static_cast<png_byte>(random()), static_cast<png_byte>(random()), static_cast<png_byte>(random())};
    }
    png_set_PLTE(png, info, colors, 1 << depth);
  }
  png_byte alphas[2] = {0, 100};
  png_color_16 clear = {1, 5, 6, 7, 1};
  if (transparent) png_set_tRNS(png, info, alphas, 2, &clear);
  png_write_info(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<std::vector<png_byte>> image(height, std::vector<png_byte>(row_bytes));
  std::vector<png_bytep> rows;
  for (std::vector<png_byte>& row : image) {
    for (png_byte& byte : row) byte = static_cast<png_byte>(random() % 5 == 0 ? 5 : random());
    rows.push_back(row.data());
  }
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

// What libpng's simplified interface decodes of a file that says no gamma, as a whole image.
std::vector<double> Reference(const std::string& file) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(png_image_begin_read_from_memory(&image, file.data(), file.size()));
  image.format = PNG_FORMAT_RGBA;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // else 16 bits were linear light
  std::vector<uint8_t> decoded(PNG_IMAGE_SIZE(image));
  EXPECT_TRUE(png_image_finish_read(&image, nullptr, decoded.data(), 0, nullptr)) << image.message;
  std::vector<double> values;
  for (size_t pixel = 0; pixel < decoded.size() / 4; ++pixel) {
    const double alpha = decoded[4 * pixel + 3] / 255.0;
    for (size_t c = 0; c < 3; ++c) values.push_back(alpha * decoded[4 * pixel + c] + (1 - alpha) * 255);
  }
  return values;
}

// Bit for bit, for every kind of file, whatever it says of its gamma, and with both filters. Of 16 bits the high eight
// are taken, as Pillow does; the reference rounds them. Interlacing only orders the pixels; the simplified interface of
// libpng 1.6.39 decodes interlaced files of 16 bits to other values, so the reference is always the file that is not
// interlaced.
TEST(Png, RowByRowIsTheWholeImage) {
  int files = 0;
  for (const auto& [color, depths] : std::map<int, std::vector<int>>{{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                                                     {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
                                                                     {PNG_COLOR_TYPE_RGB, {8, 16}},
                                                                     {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                                                     {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}}) {
    for (const int depth : depths) {
      for (const bool transparent : {false, true}) {
        if (transparent && (color & PNG_COLOR_MASK_ALPHA) != 0) continue;
        for (const bool interlaced : {false, true}) {
          for (const int gamma : {0, 45455, 100000, 62500}) {
            const std::string file = AnyPng(37, 23, color, depth, transparent, interlaced, gamma);
            const auto pixels = DecodePicture<Bilinear>(file, 23, 37);
            ASSERT_TRUE(pixels.ok()) << pixels.status();
            const std::vector<double> whole = Reference(AnyPng(37, 23, color, depth, transparent, false, 0));
            const auto cubic = DecodePicture<Bicubic>(file, 23, 37);
            ASSERT_TRUE(cubic.ok()) << cubic.status();
            const bool alpha = transparent || (color & PNG_COLOR_MASK_ALPHA) != 0;
            double off = 0, between = 0;
            for (size_t i = 0; i < whole.size(); ++i) {
              off = std::max(off, std::abs(pixels->values[i] - whole[i]));
              between = std::max(between, std::abs(pixels->values[i] - cubic->values[i]));
            }
            EXPECT_LE(off, depth < 16 ? 0 : alpha ? 2 : 1) << color << " " << depth << " " << transparent << gamma;
            EXPECT_LE(between, alpha ? 0.5 : 0) << color << " " << depth << " " << transparent << gamma;
            ++files;
          }
        }
      }
    }
  }
  EXPECT_EQ(files, 208);
}

// 67 million pixels in 65 kB. As doubles they were 1.6 GB, with a copy of 268 MB beside it.
template <typename Filter>
void ExpectMemoryOfAFewRows() {
  std::string file;
  {
    std::vector<png_byte> row(8192 / 8, 0);
    auto [png, info] = PngInto(file);
    png_set_IHDR(png, info, 8192, 8192, 1, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < 8192; ++y) png_write_row(png, row.data());
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
  }
  EXPECT_LT(file.size(), 65536u);
  const auto peak = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;  // kB
  };
  const auto before = peak();
  const auto pixels = DecodePicture<Filter>(file, 64, 64);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  EXPECT_EQ(pixels->values, std::vector<typename Filter::Number>(64 * 64 * 3, 0));
  EXPECT_LT(peak() - before, 20000);
  file[28] = 1;  // says that it is interlaced
  EXPECT_THAT(std::string(DecodePicture<Filter>(file, 64, 64).status().message()), HasSubstr("1 to 16777216 are read"));
}

TEST(Png, ALargeImageTakesTheMemoryOfAFewRows) {
  ExpectMemoryOfAFewRows<Bilinear>();
  ExpectMemoryOfAFewRows<Bicubic>();
}

}  // namespace
}  // namespace planwright
