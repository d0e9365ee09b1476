#include "planner/plan/axis.h"

#include <algorithm>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

constexpr std::string_view kAxisNames[] = {"tp", "cp", "dp", "pp", "expert_tp", "ep", "expert_dp"};

View ViewOwning(Axis axis) {
  return axis == Axis::kExpertTp || axis == Axis::kEp || axis == Axis::kExpertDp ? View::kExpert : View::kDense;
}

bool Has(const std::vector<Axis>& axes, Axis axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// The coordinates of a rank are the digits of rank - first_rank in a mixed-radix number, the first axis lowest.
int CoordinateIn(const Grid& grid, View view, int rank, Axis axis) {
  int rest = rank - grid.first_rank;
  for (Axis a : AxesOf(view)) {
    if (a == axis) return rest % grid.size(a);
    rest /= grid.size(a);
  }
  Bug("the view has no axis " + std::string(AxisName(axis)));
}

}  // namespace

std::string_view AxisName(Axis axis) { return kAxisNames[static_cast<int>(axis)]; }

std::optional<Axis> AxisFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kAxisNames); ++i) {
    if (kAxisNames[i] == name) return static_cast<Axis>(i);
  }
  return std::nullopt;
}

std::string_view ViewName(View view) { return view == View::kDense ? "dense" : "expert"; }

std::optional<View> ViewFromName(std::string_view name) {
  for (View view : {View::kDense, View::kExpert}) {
    if (ViewName(view) == name) return view;
  }
  return std::nullopt;
}

const std::array<Axis, 4>& AxesOf(View view) { return view == View::kDense ? kDenseAxes : kExpertAxes; }

int Grid::size(Axis axis) const {
  switch (axis) {
    case Axis::kTp: return tp;
    case Axis::kCp: return cp;
    case Axis::kDp: return dp;
    case Axis::kPp: return pp;
    case Axis::kExpertTp: return expert_tp;
    case Axis::kEp: return ep;
    case Axis::kExpertDp: return expert_dp;
  }
  Bug("unknown axis");
}

int Grid::size(const std::vector<Axis>& axes) const {
  int product = 1;
  for (Axis axis : axes) product *= size(axis);
  return product;
}

int CoordinateOf(const Grid& grid, int rank, Axis axis) { return CoordinateIn(grid, ViewOwning(axis), rank, axis); }

std::vector<int> GroupOf(const Grid& grid, View view, const std::vector<Axis>& axes, int rank) {
  // The first member has coordinate 0 along every axis of the group. From there each axis multiplies the members, the
  // first axis fastest, which gives ascending ranks without sorting.
  int first_member = rank;
  std::vector<std::pair<int, int>> sizes_and_strides;  // of the group's axes
  int stride = 1;
  for (Axis axis : AxesOf(view)) {
    if (Has(axes, axis)) {
      first_member -= CoordinateIn(grid, view, rank, axis) * stride;
      sizes_and_strides.emplace_back(grid.size(axis), stride);
    }
    stride *= grid.size(axis);
  }
  std::vector<int> members = {first_member};
  for (auto [size, axis_stride] : sizes_and_strides) {
    std::vector<int> more;
    more.reserve(members.size() * size);
    for (int coordinate = 0; coordinate < size; ++coordinate) {
      for (int member : members) more.push_back(member + coordinate * axis_stride);
    }
    members = std::move(more);
  }
  return members;
}

int IndexInGroup(const Grid& grid, View view, const std::vector<Axis>& axes, int rank) {
  int index = 0, scale = 1;
  for (Axis axis : AxesOf(view)) {
    if (!Has(axes, axis)) continue;
    index += CoordinateIn(grid, view, rank, axis) * scale;
    scale *= grid.size(axis);
  }
  return index;
}

std::vector<std::vector<int>> GroupsOver(const Grid& grid, View view, const std::vector<Axis>& axes) {
  // A group is added when its first member comes by, which gives the order that the header promises.
  std::vector<std::vector<int>> groups;
  for (int rank = grid.first_rank; rank < grid.first_rank + grid.ranks(); ++rank) {
    if (IndexInGroup(grid, view, axes, rank) == 0) groups.push_back(GroupOf(grid, view, axes, rank));
  }
  return groups;
}

}  // namespace planwright
