#include "planner/wire/records/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/json/json_text.h"

namespace planwright {
namespace {

using OrderedJson = nlohmann::ordered_json;

// For Perfetto, track 0 of process 0 is the idle task of a kernel.
constexpr int64_t kHostTrack = 1;
constexpr int64_t kFirstStreamTrack = 2;  // that of stream s is s later

std::string Quoted(const std::string& text) { return JsonText(OrderedJson(text)); }

// Nanoseconds as the microseconds of the format, without rounding.
std::string Microseconds(int64_t nanoseconds) {
  return absl::StrFormat("%d.%03d", nanoseconds / 1000, nanoseconds % 1000);
}
int64_t Nanoseconds(const OrderedJson& microseconds) { return WholeNanoseconds(microseconds.get<double>() * 1e3); }

constexpr int64_t kMostWall = 4'000'000'000'000'000'000;  // of Trace::wall_of_zero, until the year 2096

// What a process or a track is called, and where a track stands among the others.
std::string NameEvent(const char* kind, int rank, int64_t track, const std::string& name) {
  return absl::StrFormat(R"({"ph": "M", "name": "%s", "pid": %d, "tid": %d, "args": {"name": %s}})", kind, rank, track,
                         Quoted(name));
}
std::string OrderEvent(int rank, int64_t track) {
  return absl::StrFormat(
      R"({"ph": "M", "name": "thread_sort_index", "pid": %d, "tid": %d, "args": {"sort_index": %d}})", rank, track,
      track);
}

std::string SpanEvent(int rank, int64_t track, const TraceInstruction& instruction, int64_t begin, int64_t end,
                      const std::string& arguments) {
  const std::string name =
      instruction.frame.empty() ? instruction.kind : absl::StrCat(instruction.kind, " ", instruction.frame);
  return absl::StrCat("{\"ph\": \"X\", \"name\": ", Quoted(name), ", \"cat\": \"", instruction.op_class,
                      "\", \"pid\": ", rank, ", \"tid\": ", track, ", \"ts\": ", Microseconds(begin),
                      ", \"dur\": ", Microseconds(end - begin), ", \"args\": {\"step\": ", instruction.step,
                      ", \"number\": ", instruction.number, arguments, "}}");
}

std::string Arguments(const TraceInstruction& instruction) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&text, ", \"", name, "\": ", Quoted(value));
  };
  const auto add_number = [&](const char* name, int64_t value) {
    if (value >= 0) absl::StrAppend(&text, ", \"", name, "\": ", value);
  };
  add("kind", instruction.kind), add("frame", instruction.frame), add("part", instruction.part);
  add_number("layer", instruction.layer), add_number("microbatch", instruction.microbatch);
  add("text", instruction.text), add("path", instruction.path), add("recipe", instruction.origin);
  if (instruction.planned >= 0) absl::StrAppend(&text, ", \"planned_us\": ", Microseconds(instruction.planned));
  return text;
}

std::string PlannedEvent(int rank, int64_t track, const PlannedSpan& span) {
  return absl::StrCat("{\"ph\": \"X\", \"name\": ", Quoted(span.name), ", \"cat\": \"planned\", \"pid\": ", rank,
                      ", \"tid\": ", track, ", \"ts\": ", Microseconds(span.begin),
                      ", \"dur\": ", Microseconds(span.end - span.begin), ", \"args\": {",
                      span.recipe.empty() ? "" : absl::StrCat("\"recipe\": ", Quoted(span.recipe)), "}}");
}

// An event of a stream's track.
TraceInstruction ReadInstruction(const OrderedJson& event) {
  const OrderedJson& arguments = event.at("args");
  const auto text = [&](const char* name) { return arguments.value(name, std::string()); };
  TraceInstruction instruction;
  instruction.step = arguments.at("step").get<int64_t>(), instruction.number = arguments.at("number").get<int64_t>();
  instruction.kind = text("kind"), instruction.frame = text("frame"), instruction.part = text("part");
  instruction.text = text("text"), instruction.path = text("path"), instruction.origin = text("recipe");
  instruction.op_class = event.at("cat").get<std::string>();
  instruction.layer = arguments.value("layer", int64_t{-1});
  instruction.microbatch = arguments.value("microbatch", int64_t{-1});
  instruction.stream = event.at("tid").get<int64_t>() - kFirstStreamTrack;
  instruction.begin = Nanoseconds(event.at("ts"));
  instruction.end = instruction.begin + Nanoseconds(event.at("dur"));
  return instruction;
}

}  // namespace

absl::StatusOr<StepRange> ReadStepRange(const std::string& text) {
  const auto number = [](std::string_view digits, int64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value >= 1;
  };
  const std::string_view all = text;
  const size_t dash = all.find('-');
  StepRange range;
  bool good = number(all.substr(0, dash), range.first);
  range.last = range.first;
  if (dash != std::string_view::npos) good = good && number(all.substr(dash + 1), range.last);
  if (!good || range.last < range.first)
    return absl::InvalidArgumentError(absl::StrCat(
        "option `--trace` needs a step from 1, or a first and a last one such as 5-7; found `", text, "`"));
  if (range.count() > kMostProfiledSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("option `--trace` takes at most ", kMostProfiledSteps, " steps; ", text, " are ", range.count()));
  }
  return range;
}

std::string StepRangeText(const StepRange& range) {
  return range.count() == 1 ? absl::StrCat("step ", range.first) : absl::StrCat("steps ", range.first, "-", range.last);
}

int64_t WholeNanoseconds(double nanoseconds) {
  constexpr double kMost = 1e18;
  return std::isnan(nanoseconds) ? 0 : std::llround(std::clamp(nanoseconds, -kMost, kMost));
}

absl::Status CheckStepRange(const StepRange& range, int64_t steps) {
  if (range.last <= steps) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("option `--trace` asks for ", StepRangeText(range),
                                                 ", and the run has ", steps, steps == 1 ? " step" : " steps"));
}

std::string TracePath(const std::string& run_dir, int rank) {
  return absl::StrFormat("%s/trace/rank%04d.json", run_dir, rank);
}

std::string TraceEvents(const Trace& trace) {
  std::string events;
  const auto add = [&events](const std::string& event) {
    absl::StrAppend(&events, events.empty() ? "  " : ",\n  ", event);
  };
  add(NameEvent("process_name", trace.rank, kHostTrack, absl::StrCat("rank ", trace.rank, ", ", trace.role)));
  add(NameEvent("thread_name", trace.rank, kHostTrack, "host: launches"));
  add(OrderEvent(trace.rank, kHostTrack));
  for (size_t stream = 0; stream < trace.streams.size(); ++stream) {
    const std::string& name = trace.streams[stream];
    const int64_t track = kFirstStreamTrack + static_cast<int64_t>(stream);
    add(NameEvent("thread_name", trace.rank, track, name.empty() ? "main stream" : absl::StrCat("stream ", name)));
    add(OrderEvent(trace.rank, track));
  }
  for (const TraceInstruction& instruction : trace.instructions) {
    add(SpanEvent(trace.rank, kHostTrack, instruction, instruction.launch_begin, instruction.launch_end,
                  instruction.waited > 0 ? absl::StrCat(", \"waited_us\": ", Microseconds(instruction.waited)) : ""));
    add(SpanEvent(trace.rank, kFirstStreamTrack + instruction.stream, instruction, instruction.begin, instruction.end,
                  Arguments(instruction)));
  }
  if (trace.planned.empty()) return events;
  const auto streams = static_cast<int64_t>(trace.streams.size()), first = kFirstStreamTrack + streams;
  for (int64_t stream = 0; stream < streams; ++stream) {
    const std::string& name = trace.streams[static_cast<size_t>(stream)];
    add(NameEvent("thread_name", trace.rank, first + stream,
                  name.empty() ? "planned" : absl::StrCat("planned, ", name)));
    add(OrderEvent(trace.rank, first + stream));
  }
  for (const PlannedSpan& span : trace.planned) add(PlannedEvent(trace.rank, first + span.stream, span));
  return events;
}

std::string TraceJson(const Trace& trace) {
  return absl::StrCat("{\"displayTimeUnit\": \"ms\",\n \"otherData\": {\"rank\": ", trace.rank,
                      ", \"role\": ", Quoted(trace.role), ", \"host\": ", Quoted(trace.host),
                      ", \"device\": ", Quoted(trace.device), ", \"driver\": ", Quoted(trace.driver),
                      ", \"libraries\": ", Quoted(trace.libraries), ", \"wall_of_zero\": ", trace.wall_of_zero,
                      ", \"first_step\": ", trace.steps.first, ", \"last_step\": ", trace.steps.last,
                      ", \"streams\": ", JsonText(OrderedJson(trace.streams)), "},\n \"traceEvents\": [\n",
                      TraceEvents(trace), "\n]}\n");
}

absl::StatusOr<Trace> ReadTrace(std::string_view text) {
  try {
    absl::StatusOr<OrderedJson> parsed = ParseJson(text, kTraceJson);
    if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat("no trace: ", parsed.status().message()));
    const OrderedJson json = *std::move(parsed);
    const OrderedJson& about = json.at("otherData");
    Trace trace;
    trace.rank = about.at("rank").get<int>(), trace.role = about.at("role").get<std::string>();
    trace.host = about.at("host").get<std::string>(), trace.wall_of_zero = about.at("wall_of_zero").get<int64_t>();
    if (trace.wall_of_zero < 0 || trace.wall_of_zero > kMostWall)
      return absl::InvalidArgumentError("no trace: its clock is of another century");
    trace.device = about.value("device", ""), trace.driver = about.value("driver", "");
    trace.libraries = about.value("libraries", "");
    trace.steps = {about.at("first_step").get<int64_t>(), about.at("last_step").get<int64_t>()};
    trace.streams = about.at("streams").get<std::vector<std::string>>();
    struct Launch {
      int64_t begin, end, waited;
    };
    std::map<std::pair<int64_t, int64_t>, Launch> launches;  // by step and number
    for (const OrderedJson& event : json.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      if (event.at("tid") != kHostTrack) {
        trace.instructions.push_back(ReadInstruction(event));
        continue;
      }
      const OrderedJson& arguments = event.at("args");
      const int64_t begin = Nanoseconds(event.at("ts"));
      launches[{arguments.at("step").get<int64_t>(), arguments.at("number").get<int64_t>()}] = {
          begin, begin + Nanoseconds(event.at("dur")),
          arguments.contains("waited_us") ? Nanoseconds(arguments["waited_us"]) : 0};
    }
    for (TraceInstruction& instruction : trace.instructions) {
      const auto launch = launches.find({instruction.step, instruction.number});
      if (launch == launches.end()) return absl::InvalidArgumentError("no trace: an instruction was never launched");
      instruction.launch_begin = launch->second.begin, instruction.launch_end = launch->second.end;
      instruction.waited = std::clamp<int64_t>(launch->second.waited, 0,
                                               std::max<int64_t>(0, launch->second.end - launch->second.begin));
    }
    return trace;
  } catch (const OrderedJson::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no trace: ", error.what()));
  }
}

}  // namespace planwright
