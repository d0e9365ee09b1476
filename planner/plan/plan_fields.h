// Every field of a plan's file, once, in the order of the file. The writer, the reader, `diff`, verify and tests all
// walk this list, so they cannot disagree. A field that is added to a struct and not to its list does not compile: the
// structured bindings count the fields.
//
// Each line gives the field's class (FieldClass), which says who else knows its value and so what a wrong value does;
// whether the loss curve depends on it (Curve), which a free field must say; and the range of a free number, if
// plan_ranges.cc has no check of it.
//
// Describe(v, x) calls the visitor v for each field of x. A visitor has:
//   kFills                            true: it changes the values (reader); false: it only reads them (writer)
//   v(key, of, x)                     a field that is always in the file; `of` is FieldTraits, which converts to
//                                     FieldClass for visitors that need no more
//   v.Omittable(key, of, x, default)  a field that is left out of the file when it has its default
//   v.OutsideDigest(key, x, default)  as Omittable; the plan digest does not cover it
#pragma once

#include <type_traits>

#include "planner/plan/number_range.h"
#include "planner/plan/plan.h"

namespace planwright {

enum class FieldClass {
  kFollows,  // other fields give its one right value, by an equation of verify/: another value is refused
  kChosen,   // the planner chose it: any value that the rules allow gives the same training
  kFree,     // what the author asked for, or a name: only its range can be checked; `diff` shows it
};

// What another value of a field does to the loss curve.
enum class Curve {
  kKeeps,    // nothing: the field is about layout or names, or follows from other fields
  kChanges,  // it changes: weights, samples or arithmetic depend on the field
  kRates,    // it changes if the learning rate or weight decay of some step does: a field of their schedule
};

struct FieldTraits {
  FieldClass field_class;
  Curve curve = Curve::kKeeps;
  NumberRange range = kAnyNumber;  // of a real number
  constexpr operator FieldClass() const { return field_class; }
};
constexpr FieldTraits operator|(FieldTraits traits, Curve curve) { return {traits.field_class, curve, traits.range}; }
constexpr FieldTraits operator|(FieldTraits traits, NumberRange range) {
  return {traits.field_class, traits.curve, range};
}

inline constexpr FieldTraits kFollows = {FieldClass::kFollows}, kChosen = {FieldClass::kChosen};
// A free field must say what it does to the curve, so kFree alone is no FieldTraits: write kFree | kChanges.
inline constexpr struct FreeField {
  constexpr FieldTraits operator|(Curve curve) const { return {FieldClass::kFree, curve}; }
} kFree;
using enum Curve;

template <typename V, typename T>
using Visited = std::conditional_t<V::kFills, T, const T>;

template <typename V>
void Describe(V& v, Visited<V, Origin>& x) {
  auto& [file, line, column, what] = x;
  v("file", kFree | kKeeps, file);
  v("line", kFree | kKeeps, line);
  v("column", kFree | kKeeps, column);
  v("what", kFree | kKeeps, what);
}

template <typename V>
void Describe(V& v, Visited<V, DeviceFigures>& x) {
  auto& [memory, peak, bandwidth, link, network] = x;
  v.Omittable("memory", kFree | kKeeps | kDeviceMemory.OrZero(), memory, 0.0);
  v.Omittable("peak", kFree | kKeeps | kDevicePeak.OrZero(), peak, 0.0);
  v.Omittable("bandwidth", kFree | kKeeps | kDeviceSpeed.OrZero(), bandwidth, 0.0);
  v.Omittable("link", kFree | kKeeps | kDeviceSpeed.OrZero(), link, 0.0);
  v.Omittable("network", kFree | kKeeps | kDeviceSpeed.OrZero(), network, 0.0);
}

template <typename V>
void Describe(V& v, Visited<V, MeasuredTime>& x) {
  auto& [median, low, high, repetitions] = x;
  v("median", kFree | kKeeps | kMeasured, median);
  v("low", kFree | kKeeps | kFastest, low);
  v("high", kFree | kKeeps | kMeasured, high);
  v("repetitions", kFree | kKeeps, repetitions);
}

template <typename V>
void Describe(V& v, Visited<V, MeasuredCompute>& x) {
  auto& [kind, dtype, flops, bytes, sizes, seconds, ranks] = x;
  v("op", kFree | kKeeps, kind);
  v("dtype", kFree | kKeeps, dtype);
  v("flops", kFree | kKeeps | kWork.OrZero(), flops);
  v("bytes", kFree | kKeeps | kWork.OrZero(), bytes);
  v.Omittable("sizes", kFree | kKeeps, sizes, {});
  v("seconds", kFree | kKeeps, seconds);
  v.Omittable("ranks", kFree | kKeeps, ranks, 1);
}

template <typename V>
void Describe(V& v, Visited<V, MeasuredCommunication>& x) {
  auto& [kind, bytes, members, per_node, nodes, seconds, scaled] = x;
  v("op", kFree | kKeeps, kind);
  v("bytes", kFree | kKeeps | kWork, bytes);
  v("members", kFree | kKeeps, members);
  v("per_node", kFree | kKeeps, per_node);
  v("nodes", kFree | kKeeps, nodes);
  v("seconds", kFree | kKeeps, seconds);
  v.Omittable("scaled", kFree | kKeeps | kMeasured.OrZero(), scaled, 0.0);
}

template <typename V>
void Describe(V& v, Visited<V, MeasuredLaunch>& x) {
  auto& [kind, seconds, ranks] = x;
  v("op", kFree | kKeeps, kind);
  v("seconds", kFree | kKeeps, seconds);
  v.Omittable("ranks", kFree | kKeeps, ranks, 1);
}

template <typename V>
void Describe(V& v, Visited<V, MeasuredBeside>& x) {
  auto& [kind, speed] = x;
  v("op", kFree | kKeeps, kind);
  v("speed", kFree | kKeeps, speed);
}

template <typename V>
void Describe(V& v, Visited<V, MeasuredSkew>& x) {
  auto& [kind, fullest, factor] = x;
  v("op", kFree | kKeeps, kind);
  v("fullest", kFree | kKeeps | kFullest, fullest);
  v("factor", kFree | kKeeps, factor);
}

template <typename V>
void Describe(V& v, Visited<V, ScaledUses>& x) {
  auto& [uses, factor, low, high, count] = x;
  v("uses", kFree | kKeeps, uses);
  v("factor", kFree | kKeeps | kMeasured, factor);
  v("low", kFree | kKeeps | kFastest, low);
  v("high", kFree | kKeeps | kMeasured, high);
  v("count", kFree | kKeeps, count);
}

template <typename V>
void Describe(V& v, Visited<V, DeviceProfile>& x) {
  auto& [format_version, gpu, device, driver, libraries, tool, hosts, date, compute, communication, launch, beside,
         skew, scaled_from, scaled_by] = x;
  v("format_version", kFree | kKeeps, format_version);
  v("gpu", kFree | kKeeps, gpu);
  v("device", kFree | kKeeps, device);
  v.Omittable("driver", kFree | kKeeps, driver, {});
  v("libraries", kFree | kKeeps, libraries);
  v("tool", kFree | kKeeps, tool);
  v("hosts", kFree | kKeeps, hosts);
  v("date", kFree | kKeeps, date);
  v("compute", kFree | kKeeps, compute);
  v("communication", kFree | kKeeps, communication);
  v("launch", kFree | kKeeps, launch);
  v.Omittable("beside", kFree | kKeeps, beside, {});
  v.Omittable("skew", kFree | kKeeps, skew, {});
  v.Omittable("scaled_from", kFree | kKeeps, scaled_from, {});
  v.Omittable("scaled_by", kFree | kKeeps, scaled_by, {});
}

template <typename V>
void Describe(V& v, Visited<V, Cluster>& x) {
  auto& [nodes, gpus_per_node, gpu, host_memory, device, profile] = x;
  v("nodes", kChosen, nodes);
  v("gpus_per_node", kChosen, gpus_per_node);
  v("gpu", kChosen, gpu);
  v.Omittable("host_memory", kChosen | kDeviceMemory.OrZero(), host_memory, 0.0);
  v.OutsideDigest("device", device, {});
  v.OutsideDigest("profile", profile, {});
}

template <typename V>
void Describe(V& v, Visited<V, LaunchPlan>& x) {
  auto& [interface, restarts, deadline_floor, deadline_first_step, deadline_factor, predicted_step, fallbacks, base,
         env, setup, partition, account, qos, constraint, reservation, time, gres, cpus_per_task, container, mounts,
         options] = x;
  v.Omittable("interface", kFree | kKeeps, interface, {});
  v.Omittable("restarts", kFree | kKeeps, restarts, int64_t{0});
  v("deadline_floor", kFree | kKeeps | kDeadline.OrZero(), deadline_floor);
  v("deadline_first_step", kFree | kKeeps | kDeadline.OrZero(), deadline_first_step);
  v("deadline_factor", kFree | kKeeps | kMultiple.OrZero(), deadline_factor);
  v.Omittable("predicted_step", kFree | kKeeps | kPredicted, predicted_step, 0.0);
  v.Omittable("fallbacks", kFree | kKeeps, fallbacks, {});
  v.Omittable("base", kFree | kKeeps, base, {});
  v.Omittable("env", kFree | kKeeps, env, {});
  v.Omittable("setup", kFree | kKeeps, setup, {});
  v.Omittable("partition", kFree | kKeeps, partition, {});
  v.Omittable("account", kFree | kKeeps, account, {});
  v.Omittable("qos", kFree | kKeeps, qos, {});
  v.Omittable("constraint", kFree | kKeeps, constraint, {});
  v.Omittable("reservation", kFree | kKeeps, reservation, {});
  v.Omittable("time", kFree | kKeeps, time, {});
  v.Omittable("gres", kFree | kKeeps, gres, {});
  v.Omittable("cpus_per_task", kFree | kKeeps, cpus_per_task, int64_t{0});
  v.Omittable("container", kFree | kKeeps, container, {});
  v.Omittable("mounts", kFree | kKeeps, mounts, {});
  v.Omittable("options", kFree | kKeeps, options, {});
}

template <typename V>
void Describe(V& v, Visited<V, Grid>& x) {
  auto& [first_rank, tp, cp, dp, pp, expert_tp, ep, expert_dp] = x;
  v("first_rank", kChosen, first_rank);
  v("tp", kChosen, tp);
  v("cp", kChosen, cp);
  v("dp", kChosen, dp);
  v("pp", kChosen, pp);
  v("expert_tp", kChosen, expert_tp);
  v("ep", kChosen, ep);
  v("expert_dp", kChosen, expert_dp);
}

template <typename V>
void Describe(V& v, Visited<V, Init>& x) {
  auto& [kind, a, b] = x;
  v("kind", kFollows | kChanges, kind);
  v.Omittable("a", kFollows | kChanges, a, 0.0);
  v.Omittable("b", kFollows | kChanges, b, 0.0);
}

template <typename V>
void Describe(V& v, Visited<V, Parameter>& x) {
  auto& [name, file_name, shape, experts, shard_dim, segments, padded, decay, trained, buffer, init, part] = x;
  v("name", kFollows | kChanges, name);
  v("file_name", kFollows | kChanges, file_name);
  v("shape", kFollows | kChanges, shape);
  v.Omittable("experts", kFollows | kChanges, experts, int64_t{0});
  v.Omittable("shard_dim", kFollows, shard_dim, -1);
  v.Omittable("segments", kFollows, segments, {});
  v.Omittable("padded", kFollows, padded, false);
  v.Omittable("decay", kFollows | kChanges, decay, false);
  v.Omittable("trained", kFollows | kChanges, trained, true);
  v.Omittable("buffer", kFollows | kChanges, buffer, false);
  v("init", kFollows | kChanges, init);
  v.Omittable("part", kFollows | kRates, part, -1);
}

template <typename V>
void Describe(V& v, Visited<V, SharedSlot>& x) {
  auto& [frame, slot] = x;
  v("frame", kFollows, frame);
  v("slot", kFollows, slot);
}

template <typename V>
void Describe(V& v, Visited<V, Storage>& x) {
  auto& [frame, slot, shape, parameters, bucket, offset, stage, shared] = x;
  v("frame", kFollows, frame);
  v("slot", kFollows, slot);
  v("shape", kFollows, shape);
  v("parameters", kFollows, parameters);
  v.Omittable("bucket", kChosen, bucket, -1);
  v.Omittable("offset", kChosen, offset, int64_t{0});
  v.Omittable("stage", kFollows, stage, 0);
  v.Omittable("shared", kFollows, shared, {});
}

template <typename V>
void Describe(V& v, Visited<V, Bucket>& x) {
  auto& [name, view, tp, elements, reduce_group, tp_group, shards, stage, dtype, master, once_over] = x;
  v("name", kFree | kKeeps, name);
  v("view", kFollows, view);
  v("tp", kFollows, tp);
  v("elements", kChosen, elements);
  v.Omittable("reduce_group", kFollows, reduce_group, {});
  v.Omittable("tp_group", kFollows, tp_group, {});
  v.Omittable("shards", kFollows, shards, 1);
  v.Omittable("stage", kFollows, stage, 0);
  v("dtype", kFollows, dtype);
  v("master", kFollows, master);
  v.Omittable("once_over", kFollows, once_over, {});
}

template <typename V>
void Describe(V& v, Visited<V, LayerSummary>& x) {
  auto& [kind, frame, parameters, forward_flops, stage, mixing_flops, expert_row, adapter_flops] = x;
  v("kind", kFree | kChanges, kind);
  v("frame", kFollows, frame);
  v("parameters", kFollows, parameters);
  v("forward_flops", kFollows, forward_flops);
  v.Omittable("mixing_flops", kFollows, mixing_flops, int64_t{0});
  v.Omittable("adapter_flops", kFollows, adapter_flops, int64_t{0});
  v.Omittable("stage", kChosen, stage, 0);
  v.Omittable("expert_row", kFollows, expert_row, -1);
}

template <typename V>
void Describe(V& v, Visited<V, Module>& x) {
  auto& [name, model, kind, has_images, carries_loss, constants, grid, trains_backbone, trains_projection,
         adapter_targets, recompute, dispatch, parameters, storages, buckets, layers, parameter_count, projector_count,
         embed_flops, head_flops, imbalance, origin] = x;
  v("name", kFree | kChanges, name);
  v("model", kFree | kKeeps, model);
  v("kind", kFree | kChanges, kind);
  v.Omittable("has_images", kFollows | kChanges, has_images, false);
  v.Omittable("carries_loss", kFollows | kChanges, carries_loss, false);
  v("grid", kChosen, grid);
  v.Omittable("trains_backbone", kFree | kChanges, trains_backbone, true);
  v.Omittable("trains_projection", kFree | kChanges, trains_projection, true);
  v.Omittable("adapter_targets", kFree | kChanges, adapter_targets, {});
  v.Omittable("recompute", kChosen, recompute, {});
  v.Omittable("dispatch", kChosen, dispatch, "all_to_all");
  v("constants", kFree | kChanges, constants);
  v("parameter_count", kFollows, parameter_count);
  v.Omittable("projector_count", kFollows, projector_count, int64_t{0});
  v.Omittable("embed_flops", kFollows, embed_flops, int64_t{0});
  v.Omittable("head_flops", kFollows, head_flops, int64_t{0});
  v.Omittable("imbalance", kChosen, imbalance, 0.0);
  v.OutsideDigest("origin", origin, -1);
  v("layers", kFollows | kChanges, layers);
  v("parameters", kFollows | kChanges, parameters);
  v("storages", kFollows, storages);
  v("buckets", kFollows, buckets);
}

template <typename V>
void Describe(V& v, Visited<V, Group>& x) {
  auto& [name, short_name, module, view, axes, ranks, streams, origin] = x;
  v("name", kFollows, name);
  v("short_name", kFollows, short_name);
  v.Omittable("module", kFollows, module, {});
  v("view", kFollows, view);
  v.Omittable("axes", kFollows, axes, {});
  v.Omittable("ranks", kFollows, ranks, {});
  v.Omittable("streams", kFollows, streams, {});
  v.OutsideDigest("origin", origin, -1);
}

template <typename V>
void Describe(V& v, Visited<V, Bridge>& x) {
  auto& [name, from, to, kind, token, max_mean_square, forward, backward, origin] = x;
  v("name", kFollows, name);
  v("from", kFree | kChanges, from);
  v("to", kFree | kChanges, to);
  v("kind", kFollows, kind);
  v.Omittable("token", kFree | kChanges, token, int64_t{-1});
  v.Omittable("max_mean_square", kFree | kKeeps | kMeanSquare.OrZero(), max_mean_square, 0.0);
  v.OutsideDigest("origin", origin, -1);
  v("forward", kFollows, forward);
  v("backward", kFollows, backward);
}

template <typename V>
void Describe(V& v, Visited<V, Segment>& x) {
  auto& [kind, first_sample, end_sample] = x;
  v("kind", kFollows, kind);
  v("first_sample", kFollows, first_sample);
  v("end_sample", kFollows, end_sample);
}

template <typename V>
void Describe(V& v, Visited<V, LearningRate>& x) {
  auto& [peak, min, init, warmup_samples, decay_samples, style, wsd_decay_samples, wsd_style] = x;
  v("peak", kFree | kRates | kLearningRate, peak);
  v("min", kFree | kRates | kLearningRate, min);
  v("init", kFree | kRates | kLearningRate, init);
  v("warmup_samples", kFree | kRates, warmup_samples);
  v("decay_samples", kFree | kRates, decay_samples);
  v("style", kFree | kRates, style);
  v.Omittable("wsd_decay_samples", kFree | kRates, wsd_decay_samples, int64_t{0});
  v.Omittable("wsd_style", kFree | kRates, wsd_style, {});
}

template <typename V>
void Describe(V& v, Visited<V, WeightDecay>& x) {
  auto& [start, end, style, samples] = x;
  v("start", kFree | kRates | kWeightDecay, start);
  v("end", kFree | kRates | kWeightDecay, end);
  v("style", kFree | kRates, style);
  v("samples", kFollows | kRates, samples);
}

template <typename V>
void Describe(V& v, Visited<V, Budget>& x) {
  auto& [train_samples, global_samples, micro_samples, sequence_length, microbatches, steps, block_samples,
         samples_past_budget, learning_rate, weight_decay, segments] = x;
  v("train_samples", kFree | kChanges, train_samples);
  v("global_samples", kFree | kChanges, global_samples);
  v("micro_samples", kChosen, micro_samples);
  v("sequence_length", kFree | kChanges, sequence_length);
  v("microbatches", kFollows, microbatches);
  v("steps", kFollows, steps);
  v("block_samples", kFollows, block_samples);
  v("samples_past_budget", kFollows, samples_past_budget);
  v("learning_rate", kFree | kRates, learning_rate);
  v("weight_decay", kFree | kRates, weight_decay);
  v("segments", kFollows, segments);
}

template <typename V>
void Describe(V& v, Visited<V, RatePart>& x) {
  auto& [match, learning_rate, weight_decay] = x;
  v("match", kFree | kRates, match);
  v("learning_rate", kFree | kRates | kLearningRate, learning_rate);
  v("weight_decay", kFree | kRates | kWeightDecay, weight_decay);
}

template <typename V>
void Describe(V& v, Visited<V, OptimizerPlan>& x) {
  auto& [beta1, beta2, eps, clip_grad_norm, parts] = x;
  v("beta1", kFree | kChanges | kBelowOne, beta1);
  v("beta2", kFree | kChanges | kBelowOne, beta2);
  v("eps", kFree | kChanges | kEpsilon, eps);
  v("clip_grad_norm", kFree | kChanges | kNorm, clip_grad_norm);
  v.Omittable("parts", kFree | kRates, parts, {});
}

template <typename V>
void Describe(V& v, Visited<V, EncoderData>& x) {
  auto& [module, token, patch, pixel_shuffle, max_image, pixels] = x;
  v("module", kFollows, module);
  v("token", kFollows | kChanges, token);
  v("patch", kFollows | kChanges, patch);
  v("pixel_shuffle", kFollows | kChanges, pixel_shuffle);
  v("max_image", kFollows | kChanges, max_image);
  v.Omittable("pixels", kFollows | kChanges, pixels, std::string(kClipNorm.name));
}

template <typename V>
void Describe(V& v, Visited<V, SourcePlan>& x) {
  auto& [name, kind, shards, ignore, path, weight] = x;
  v("name", kFree | kChanges, name);
  v("kind", kFree | kChanges, kind);
  v.Omittable("shards", kFree | kChanges, shards, {});
  v.Omittable("ignore", kFree | kChanges, ignore, {});
  v.Omittable("path", kFree | kChanges, path, {});
  v("weight", kFree | kChanges, weight);
}

template <typename V>
void Describe(V& v, Visited<V, CountedImages>& x) {
  auto& [encoder, source, samples, images, patches, max_images, max_patches, sizes] = x;
  v("encoder", kFree | kKeeps, encoder);
  v("source", kFree | kKeeps, source);
  v("samples", kFree | kKeeps, samples);
  v("images", kFree | kKeeps, images);
  v("patches", kFree | kKeeps, patches);
  v("max_images", kFree | kKeeps, max_images);
  v("max_patches", kFree | kKeeps, max_patches);
  v("sizes", kFree | kKeeps, sizes);
}

template <typename V>
void Describe(V& v, Visited<V, CountedDocuments>& x) {
  auto& [source, samples, documents, mean_squares] = x;
  v("source", kFree | kKeeps, source);
  v("samples", kFree | kKeeps, samples);
  v("documents", kFree | kKeeps, documents);
  v("mean_squares", kFree | kKeeps, mean_squares);
}

template <typename V>
void Describe(V& v, Visited<V, CountedSamples>& x) {
  auto& [digest, images, first_patches, documents, first_squares] = x;
  v("digest", kFree | kKeeps, digest);
  v("images", kFree | kKeeps, images);
  v("first_patches", kFree | kKeeps, first_patches);
  v.Omittable("documents", kFree | kKeeps, documents, {});
  v.Omittable("first_squares", kFree | kKeeps, first_squares, {});
}

template <typename V>
void Describe(V& v, Visited<V, DataPlan>& x) {
  auto& [kind, seed, image_token, pad_token, end_token, vocabulary, image_grids, min_images, max_images, classes,
         text_tokens, window, min_patches, max_patches, resize, grid, orientation, sources, tokenizer, tokenizer_digest,
         template_digest, shuffle, packing, long_documents, damaged, most_damaged, index, balance, path, base,
         packed_documents, encoders, counted] = x;
  v("kind", kFree | kChanges, kind);
  v("seed", kFree | kChanges, seed);
  v.Omittable("image_token", kFree | kChanges, image_token, int64_t{-1});
  v.Omittable("pad_token", kFollows | kChanges, pad_token, int64_t{-1});
  v.Omittable("end_token", kFollows | kChanges, end_token, int64_t{-1});
  v("vocabulary", kFollows | kChanges, vocabulary);
  v.Omittable("image_grids", kFree | kChanges, image_grids, {});
  v.Omittable("min_images", kFree | kChanges, min_images, int64_t{0});
  v.Omittable("max_images", kFree | kChanges, max_images, int64_t{0});
  v.Omittable("classes", kFree | kChanges, classes, int64_t{0});
  v.Omittable("text_tokens", kFree | kChanges, text_tokens, int64_t{0});
  v.Omittable("window", kFree | kChanges, window, int64_t{0});
  v.Omittable("min_patches", kFree | kChanges, min_patches, int64_t{0});
  v.Omittable("max_patches", kFree | kChanges, max_patches, int64_t{0});
  v.Omittable("resize", kFree | kChanges, resize, "bilinear");
  v.Omittable("grid", kFree | kChanges, grid, "ceil");
  v.Omittable("orientation", kFree | kChanges, orientation, "stored");
  v.Omittable("sources", kFree | kChanges, sources, {});
  v.Omittable("tokenizer", kFree | kChanges, tokenizer, "bytes");
  v.Omittable("tokenizer_digest", kFree | kChanges, tokenizer_digest, {});
  v.Omittable("template_digest", kFree | kChanges, template_digest, {});
  v.Omittable("shuffle", kFree | kChanges, shuffle, "all");
  v.Omittable("packing", kFree | kChanges, packing, "first_fit");
  v.Omittable("long", kFree | kChanges, long_documents, "error");
  v.Omittable("damaged", kFree | kChanges, damaged, "error");
  v.Omittable("most_damaged", kFree | kKeeps, most_damaged, int64_t{0});
  v.OutsideDigest("index", index, {});
  v.Omittable("balance", kFree | kKeeps, balance, "none");
  v.Omittable("path", kFree | kChanges, path, {});
  v.OutsideDigest("base", base, {});
  v.Omittable("packed_documents", kFree | kChanges, packed_documents, false);
  v.Omittable("encoders", kFollows | kChanges, encoders, {});
  v.Omittable("counted", kFree | kKeeps, counted, {});
}

// What is evaluated changes no weight; what samples of a set are, its data says.
template <typename V>
void Describe(V& v, Visited<V, EvaluationSet>& x) {
  auto& [name, samples, rounds, data] = x;
  v("name", kFree | kKeeps, name);
  v("samples", kFree | kKeeps, samples);
  v("rounds", kFollows, rounds);
  v("data", kFree | kKeeps, data);
}

template <typename V>
void Describe(V& v, Visited<V, EvaluationPlan>& x) {
  auto& [every_samples, sets] = x;
  v("every_samples", kFree | kKeeps, every_samples);
  v("sets", kFree | kKeeps, sets);
}

template <typename V>
void Describe(V& v, Visited<V, DivergencePlan>& x) {
  auto& [window, factor] = x;
  v("window", kFree | kKeeps, window);
  v("factor", kFree | kKeeps | kGrowth, factor);
}

template <typename V>
void Describe(V& v, Visited<V, WeightSourcePlan>& x) {
  auto& [part, from, base] = x;
  v("for", kFree | kChanges, part);
  v("from", kFree | kChanges, from);
  v.OutsideDigest("base", base, {});
}

template <typename V>
void Describe(V& v, Visited<V, InitializePlan>& x) {
  auto& [from, base, sources, ignore, optimizer, schedule] = x;
  v.Omittable("from", kFree | kChanges, from, {});
  v.OutsideDigest("base", base, {});
  v.Omittable("sources", kFree | kChanges, sources, {});
  v.Omittable("ignore", kFree | kKeeps, ignore, {});
  v.Omittable("optimizer", kFree | kChanges, optimizer, false);
  v.Omittable("schedule", kFree | kChanges, schedule, "recipe");
}

template <typename V>
void Describe(V& v, Visited<V, Symbol>& x) {
  auto& [name, maximum, what, expected, mean] = x;
  v("name", kFollows, name);
  v("maximum", kChosen, maximum);
  v.Omittable("expected", kChosen, expected, int64_t{0});
  v.Omittable("mean", kFollows, mean, int64_t{0});
  v("what", kFree | kKeeps, what);
}

template <typename V>
void Describe(V& v, Visited<V, Accumulator>& x) {
  auto& [name, dtype, elements, parts] = x;
  v("name", kFollows, name);
  v("dtype", kFollows, dtype);
  v("elements", kFollows, elements);
  v.Omittable("parts", kFollows, parts, {});
}

template <typename V>
void Describe(V& v, Visited<V, StageSchedule>& x) {
  auto& [module, stage, warmup, order] = x;
  v("module", kFollows, module);
  v("stage", kFollows, stage);
  v("warmup", kFollows, warmup);
  v("order", kFollows, order);
}

template <typename V>
void Describe(V& v, Visited<V, RankRange>& x) {
  auto& [first, count, stride] = x;
  v("first", kFollows, first);
  v.Omittable("count", kFollows, count, 1);
  v.Omittable("stride", kFollows, stride, 1);
}

template <typename V>
void Describe(V& v, Visited<V, CheckpointRule>& x) {
  auto& [module, parameters, view, kept, stage, cut, replicated, states, flat] = x;
  v("module", kFollows, module);
  v("parameters", kFollows, parameters);
  v("view", kFollows, view);
  v.Omittable("kept", kFollows, kept, true);
  v.Omittable("stage", kFollows, stage, 0);
  v.Omittable("cut", kFollows, cut, {});
  v.Omittable("replicated", kFollows, replicated, {});
  v.Omittable("states", kFollows, states, {});
  v.Omittable("flat", kFollows, flat, {});
}

template <typename V>
void Describe(V& v, Visited<V, CheckpointPlan>& x) {
  auto& [every_steps, keep_last, keep_every_steps, keep_best, copy_bytes, rules, common] = x;
  v.Omittable("every_steps", kChosen, every_steps, int64_t{0});
  v.Omittable("keep_last", kChosen, keep_last, int64_t{0});
  v.Omittable("keep_every_steps", kChosen, keep_every_steps, int64_t{0});
  v.Omittable("keep_best", kChosen, keep_best, {});
  v.Omittable("copy_bytes", kChosen, copy_bytes, int64_t{0});
  v("common", kFollows, common);
  v("rules", kFollows, rules);
}

template <typename V>
void Describe(V& v, Visited<V, ExchangePart>& x) {
  auto& [bridge, backward, send, value, sizes, group, shift] = x;
  v.Omittable("bridge", kFollows, bridge, {});
  v.Omittable("backward", kFollows, backward, false);
  v.Omittable("send", kFollows, send, false);
  v("value", kFollows, value);
  v.Omittable("sizes", kFollows, sizes, {});
  v.Omittable("group", kFollows, group, {});
  v.Omittable("shift", kFollows, shift, 0);
}

template <typename V>
void Describe(V& v, Visited<V, Instruction>& x) {
  auto& [kind, inputs, parameters, gradients, outputs, frees, attributes, group, parts, block, frame, microbatch,
         stream, origin] = x;
  v("op", kFollows, kind);
  v.Omittable("block", kFollows, block, {});
  v.Omittable("frame", kFollows, frame, {});
  v.Omittable("microbatch", kFollows, microbatch, -1);
  v.Omittable("group", kFollows, group, {});
  v.Omittable("stream", kChosen, stream, {});
  v.Omittable("inputs", kFollows, inputs, {});
  v.Omittable("parameters", kFollows, parameters, {});
  v.Omittable("gradients", kFollows, gradients, {});
  v.Omittable("outputs", kFollows, outputs, {});
  v.Omittable("parts", kFollows, parts, {});
  v.Omittable("attributes", kFollows, attributes, {});
  v.Omittable("frees", kFollows, frees, {});
  v.OutsideDigest("origin", origin, -1);
}

template <typename V>
void Describe(V& v, Visited<V, Probe>& x) {
  auto& [value, name] = x;
  v("value", kFree | kKeeps, value);
  v("name", kFree | kKeeps, name);
}

template <typename V>
void Describe(V& v, Visited<V, Block>& x) {
  auto& [name, module, inputs, outputs, saved, takes, probes, body, origin] = x;
  v("name", kFree | kKeeps, name);
  v.Omittable("module", kFollows, module, {});
  v.OutsideDigest("origin", origin, -1);
  v.Omittable("inputs", kFollows, inputs, {});
  v.Omittable("takes", kFollows, takes, {});
  v("body", kFollows, body);
  v.Omittable("outputs", kFollows, outputs, {});
  v.Omittable("saved", kFollows, saved, {});
  v.Omittable("probes", kFree | kKeeps, probes, {});
}

template <typename V>
void Describe(V& v, Visited<V, Role>& x) {
  auto& [name, modules, ranks, setup, resume, step, evaluate, score, save, teardown, origin] = x;
  v("name", kFree | kKeeps, name);
  v("modules", kFollows, modules);
  v("ranks", kFollows, ranks);
  v.OutsideDigest("origin", origin, -1);
  v("setup", kFollows, setup);
  v.Omittable("resume", kFollows, resume, {});
  v("step", kFollows, step);
  v.Omittable("evaluate", kFollows, evaluate, {});
  v.Omittable("score", kFollows, score, {});
  v.Omittable("save", kFollows, save, {});
  v("teardown", kFollows, teardown);
}

template <typename V>
void Describe(V& v, Visited<V, Plan>& x) {
  auto& [format_version, tool_version, name, recipe_digest, digest, precision, deterministic, seed, world_size,
         log_every_steps, cluster, launch, modules, groups, bridges, budget, optimizer, data, evaluation, divergence,
         initialize, checkpoint, accumulators, symbols, schedule, blocks, roles, origins] = x;
  v("format_version", kFollows, format_version);
  v.OutsideDigest("tool_version", tool_version, {});
  v("name", kFree | kKeeps, name);
  v.OutsideDigest("recipe_digest", recipe_digest, {});
  v.OutsideDigest("digest", digest, {});
  v("precision", kFree | kChanges, precision);
  v.Omittable("deterministic", kFree | kChanges, deterministic, false);
  v("seed", kFree | kChanges, seed);
  v("world_size", kFollows, world_size);
  v("log_every_steps", kChosen, log_every_steps);
  v("cluster", kChosen, cluster);
  v.OutsideDigest("launch", launch, {});
  v("budget", kFollows, budget);
  v("optimizer", kFree | kChanges, optimizer);
  v("data", kFree | kChanges, data);
  v.Omittable("evaluation", kFree | kKeeps, evaluation, {});
  v.Omittable("divergence", kFree | kKeeps, divergence, {});
  v("initialize", kFree | kChanges, initialize);
  v("checkpoint", kFollows, checkpoint);
  v("accumulators", kFollows, accumulators);
  v("symbols", kFollows, symbols);
  v("modules", kFollows | kChanges, modules);
  v("groups", kFollows, groups);
  v("bridges", kFollows | kChanges, bridges);
  v("schedule", kFollows, schedule);
  v("blocks", kFollows, blocks);
  v("roles", kFollows, roles);
  v.OutsideDigest("origins", origins, {});
}

}  // namespace planwright
