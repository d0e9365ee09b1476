// JPEG files by libjpeg-turbo with the settings that it has unless told otherwise, and so to the bit as Pillow reads
// them.
#include <absl/strings/str_cat.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

// They need <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "planner/data/pictures/picture_rows.h"

namespace planwright {
namespace {

// A file can repeat scans that hold next to nothing, each of which costs a pass over the picture.
constexpr int kMaxScans = 500;

// libjpeg's state. It ends what fails by longjmp(): each function with setjmp() below holds nothing that needs a
// destructor, and calls nothing of ours.
struct JpegReader {
  JpegReader() = default;
  JpegReader(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }

  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf back = {};
  char error[JMSG_LENGTH_MAX + 40] = "";
};

[[noreturn]] void FailWith(j_common_ptr jpeg, const char* begin, const char* rest = "") {
  auto* reader = static_cast<JpegReader*>(jpeg->client_data);
  std::snprintf(reader->error, sizeof reader->error, "%s%s", begin, rest);
  std::longjmp(reader->back, 1);
}

[[noreturn]] void OnError(j_common_ptr jpeg) {
  constexpr char kDamage[] = "Corrupt JPEG data: ";
  char message[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, message);
  const bool damage = std::strncmp(message, kDamage, sizeof kDamage - 1) == 0;
  FailWith(jpeg, damage ? "its data are damaged: " : "", damage ? message + sizeof kDamage - 1 : message);
}

// libjpeg warns of damage, and fills what is missing with grey. Some warnings are of no damage: they change no pixel.
void OnMessage(j_common_ptr jpeg, int level) {
  if (level >= 0) return;  // no warning, only a trace
  switch (jpeg->err->msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_NOT_SEQUENTIAL: return;
    case JWRN_JPEG_EOF: FailWith(jpeg, "the file ends too early");
    default: OnError(jpeg);
  }
}

void OnProgress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMaxScans)
    FailWith(jpeg, "it has more than 500 scans");
}

// Reads all before the pixels.
bool BeginFile(JpegReader& reader, const unsigned char* file, size_t bytes) {
  jpeg_decompress_struct& jpeg = reader.jpeg;
  jpeg.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = OnError;
  reader.errors.emit_message = OnMessage;
  jpeg.client_data = &reader;
  if (setjmp(reader.back) != 0) return false;
  jpeg_create_decompress(&jpeg);
  reader.progress.progress_monitor = OnProgress;
  jpeg.progress = &reader.progress;
  jpeg_mem_src(&jpeg, file, bytes);
  jpeg_read_header(&jpeg, TRUE);
  return true;
}

// A file in several scans is read as a whole here.
bool BeginRows(JpegReader& reader) {
  jpeg_decompress_struct& jpeg = reader.jpeg;
  if (setjmp(reader.back) != 0) return false;
  jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : jpeg.num_components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_start_decompress(&jpeg);
  return true;
}

bool ReadRow(JpegReader& reader, unsigned char* row) {
  if (setjmp(reader.back) != 0) return false;
  return jpeg_read_scanlines(&reader.jpeg, &row, 1) == 1;
}

bool EndFile(JpegReader& reader) {
  if (setjmp(reader.back) != 0) return false;
  return jpeg_finish_decompress(&reader.jpeg) != FALSE;
}

// a b / 255, rounded as Pillow does it.
int Scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

void GreyToRgb(const uint8_t* grey, int64_t width, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x) rgb[3 * x] = rgb[3 * x + 1] = rgb[3 * x + 2] = grey[x];
}

// As Pillow: it takes all such files for those of Adobe's programs, which store 255 less the ink.
void CmykToRgb(const uint8_t* cmyk, int64_t width, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x) {
    const int light = cmyk[4 * x + 3];
    for (int64_t c = 0; c < 3; ++c) {
      const int value = light - Scaled(255 - cmyk[4 * x + c], light);
      rgb[3 * x + c] = static_cast<uint8_t>(value < 0 ? 0 : value);
    }
  }
}

class JpegRows : public PictureRows {
 public:
  absl::Status Open(std::string_view file, const PictureSize& size) {
    if (!BeginFile(reader_, reinterpret_cast<const unsigned char*>(file.data()), file.size())) return Failed();
    const jpeg_decompress_struct& jpeg = reader_.jpeg;
    width_ = size.width;
    colors_ = jpeg.num_components;
    // What is decoded is what the limits were compared with.
    if (jpeg.image_width != size.width || jpeg.image_height != size.height)
      return absl::InvalidArgumentError("JPEG: it says two sizes");
    if (colors_ != 1 && colors_ != 3 && colors_ != 4)
      return absl::InvalidArgumentError(absl::StrCat("JPEG: it has ", colors_, " colors; 1, 3 or 4 are read"));
    if (!BeginRows(reader_)) return Failed();
    if (jpeg.output_components != colors_ || jpeg.output_width != size.width || jpeg.output_height != size.height)
      return absl::InvalidArgumentError("JPEG: its rows are of another size than it says");
    decoded_.resize(width_ * colors_);
    if (colors_ != 3) rgb_.resize(width_ * 3);
    return absl::OkStatus();
  }

  int64_t channels() const override { return 3; }

  absl::StatusOr<const uint8_t*> Next() override {
    if (!ReadRow(reader_, decoded_.data())) return Failed();
    if (colors_ == 3) return decoded_.data();
    (colors_ == 1 ? GreyToRgb : CmykToRgb)(decoded_.data(), width_, rgb_.data());
    return rgb_.data();
  }

  absl::Status Finish() override { return EndFile(reader_) ? absl::OkStatus() : Failed(); }

 private:
  absl::Status Failed() const { return absl::InvalidArgumentError(absl::StrCat("JPEG: ", reader_.error)); }

  JpegReader reader_;
  int64_t width_ = 0;
  int colors_ = 0;
  std::vector<uint8_t> decoded_, rgb_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PictureRows>> OpenJpegRows(std::string_view file, const PictureSize& size) {
  auto rows = std::make_unique<JpegRows>();
  if (absl::Status status = rows->Open(file, size); !status.ok()) return status;
  return rows;
}

}  // namespace planwright
