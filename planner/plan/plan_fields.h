// Every field of the plan's file, once: the writer, the reader and the tests' generator walk the same list, so they cannot
// drift apart. The structured bindings make a field that is added to the plan but not to its file fail to compile here.
//
// A visitor V has:
//   kFills            whether it changes the value (reader) or only looks at it (writer)
//   v(key, x)         a field that is always written
//   v.Omittable(key, x, default)      left out of the file when it has its default
//   v.OutsideDigest(key, x, default)  as Omittable, and not covered by the plan digest
#pragma once

#include <type_traits>

#include "planner/plan/plan.h"

namespace planwright {

template <typename V, typename T>
using Visited = std::conditional_t<V::kFills, T, const T>;

template <typename V>
void Describe(V& v, Visited<V, Origin>& x) {
  auto& [file, line, column, what] = x;
  v("file", file);
  v("line", line);
  v("column", column);
  v("what", what);
}

template <typename V>
void Describe(V& v, Visited<V, Cluster>& x) {
  auto& [nodes, gpus_per_node, gpu] = x;
  v("nodes", nodes);
  v("gpus_per_node", gpus_per_node);
  v("gpu", gpu);
}

template <typename V>
void Describe(V& v, Visited<V, Grid>& x) {
  auto& [first_rank, tp, cp, dp, pp, expert_tp, ep, expert_dp] = x;
  v("first_rank", first_rank);
  v("tp", tp);
  v("cp", cp);
  v("dp", dp);
  v("pp", pp);
  v("expert_tp", expert_tp);
  v("ep", ep);
  v("expert_dp", expert_dp);
}

template <typename V>
void Describe(V& v, Visited<V, Init>& x) {
  auto& [kind, a, b] = x;
  v("kind", kind);
  v.Omittable("a", a, 0.0);
  v.Omittable("b", b, 0.0);
}

template <typename V>
void Describe(V& v, Visited<V, Parameter>& x) {
  auto& [name, file_name, shape, experts, shard_dim, segments, decay, trained, buffer, init] = x;
  v("name", name);
  v("file_name", file_name);
  v("shape", shape);
  v.Omittable("experts", experts, int64_t{0});
  v.Omittable("shard_dim", shard_dim, -1);
  v.Omittable("segments", segments, {});
  v.Omittable("decay", decay, false);
  v.Omittable("trained", trained, true);
  v.Omittable("buffer", buffer, false);
  v("init", init);
}

template <typename V>
void Describe(V& v, Visited<V, Storage>& x) {
  auto& [frame, slot, shape, parameters, bucket, offset, stage] = x;
  v("frame", frame);
  v("slot", slot);
  v("shape", shape);
  v("parameters", parameters);
  v.Omittable("bucket", bucket, -1);
  v.Omittable("offset", offset, int64_t{0});
  v.Omittable("stage", stage, 0);
}

template <typename V>
void Describe(V& v, Visited<V, Bucket>& x) {
  auto& [name, view, tp, elements, reduce_group, tp_group, shards, stage] = x;
  v("name", name);
  v("view", view);
  v("tp", tp);
  v("elements", elements);
  v.Omittable("reduce_group", reduce_group, {});
  v.Omittable("tp_group", tp_group, {});
  v.Omittable("shards", shards, 1);
  v.Omittable("stage", stage, 0);
}

template <typename V>
void Describe(V& v, Visited<V, LayerSummary>& x) {
  auto& [kind, frame, parameters, forward_flops, stage, mixing_flops] = x;
  v("kind", kind);
  v("frame", frame);
  v("parameters", parameters);
  v("forward_flops", forward_flops);
  v.Omittable("mixing_flops", mixing_flops, int64_t{0});
  v.Omittable("stage", stage, 0);
}

template <typename V>
void Describe(V& v, Visited<V, Module>& x) {
  auto& [name, model, kind, grid, trains_backbone, trains_projection, recompute, parameters, storages, buckets, layers, parameter_count,
         projector_count, embed_flops, head_flops, experts, top_k, moe_layers, bias_rate, aux_coefficient, imbalance, patch, class_tokens,
         pixel_shuffle, width, origin] = x;
  v("name", name);
  v("model", model);
  v("kind", kind);
  v("grid", grid);
  v.Omittable("trains_backbone", trains_backbone, true);
  v.Omittable("trains_projection", trains_projection, true);
  v.Omittable("recompute", recompute, {});
  v("parameter_count", parameter_count);
  v.Omittable("projector_count", projector_count, int64_t{0});
  v.Omittable("embed_flops", embed_flops, int64_t{0});
  v.Omittable("head_flops", head_flops, int64_t{0});
  v.Omittable("experts", experts, int64_t{0});
  v.Omittable("top_k", top_k, int64_t{0});
  v.Omittable("moe_layers", moe_layers, int64_t{0});
  v.Omittable("bias_rate", bias_rate, 0.0);
  v.Omittable("aux_coefficient", aux_coefficient, 0.0);
  v.Omittable("imbalance", imbalance, 0.0);
  v.Omittable("patch", patch, int64_t{0});
  v.Omittable("class_tokens", class_tokens, int64_t{0});
  v.Omittable("pixel_shuffle", pixel_shuffle, int64_t{0});
  v("width", width);
  v.OutsideDigest("origin", origin, -1);
  v("layers", layers);
  v("parameters", parameters);
  v("storages", storages);
  v("buckets", buckets);
}

template <typename V>
void Describe(V& v, Visited<V, Group>& x) {
  auto& [name, short_name, module, view, axes, ranks, used, origin] = x;
  v("name", name);
  v("short_name", short_name);
  v.Omittable("module", module, {});
  v("view", view);
  v.Omittable("axes", axes, {});
  v.Omittable("ranks", ranks, {});
  v("used", used);
  v.OutsideDigest("origin", origin, -1);
}

template <typename V>
void Describe(V& v, Visited<V, Bridge>& x) {
  auto& [name, from, to, kind, token, forward, backward, origin] = x;
  v("name", name);
  v("from", from);
  v("to", to);
  v("kind", kind);
  v.Omittable("token", token, int64_t{-1});
  v.OutsideDigest("origin", origin, -1);
  v("forward", forward);
  v("backward", backward);
}

template <typename V>
void Describe(V& v, Visited<V, Segment>& x) {
  auto& [kind, first_sample, end_sample] = x;
  v("kind", kind);
  v("first_sample", first_sample);
  v("end_sample", end_sample);
}

template <typename V>
void Describe(V& v, Visited<V, LearningRate>& x) {
  auto& [peak, min, init, warmup_samples, decay_samples, style, wsd_decay_samples, wsd_style] = x;
  v("peak", peak);
  v("min", min);
  v("init", init);
  v("warmup_samples", warmup_samples);
  v("decay_samples", decay_samples);
  v("style", style);
  v.Omittable("wsd_decay_samples", wsd_decay_samples, int64_t{0});
  v.Omittable("wsd_style", wsd_style, {});
}

template <typename V>
void Describe(V& v, Visited<V, WeightDecay>& x) {
  auto& [start, end, style, samples] = x;
  v("start", start);
  v("end", end);
  v("style", style);
  v("samples", samples);
}

template <typename V>
void Describe(V& v, Visited<V, Budget>& x) {
  auto& [train_samples, global_samples, micro_samples, sequence_length, microbatches, steps, samples_past_budget, learning_rate,
         weight_decay, segments] = x;
  v("train_samples", train_samples);
  v("global_samples", global_samples);
  v("micro_samples", micro_samples);
  v("sequence_length", sequence_length);
  v("microbatches", microbatches);
  v("steps", steps);
  v("samples_past_budget", samples_past_budget);
  v("learning_rate", learning_rate);
  v("weight_decay", weight_decay);
  v("segments", segments);
}

template <typename V>
void Describe(V& v, Visited<V, OptimizerPlan>& x) {
  auto& [beta1, beta2, eps, clip_grad_norm] = x;
  v("beta1", beta1);
  v("beta2", beta2);
  v("eps", eps);
  v("clip_grad_norm", clip_grad_norm);
}

template <typename V>
void Describe(V& v, Visited<V, DataPlan>& x) {
  auto& [kind, seed, image_token, pad_token, end_token, vocabulary, image_grids, max_images, classes, text_tokens, shards, window,
         min_patches, max_patches, path, base, packed_documents, patch, pixel_shuffle, max_image] = x;
  v("kind", kind);
  v("seed", seed);
  v.Omittable("image_token", image_token, int64_t{-1});
  v.Omittable("pad_token", pad_token, int64_t{-1});
  v.Omittable("end_token", end_token, int64_t{-1});
  v("vocabulary", vocabulary);
  v.Omittable("image_grids", image_grids, {});
  v.Omittable("max_images", max_images, int64_t{0});
  v.Omittable("classes", classes, int64_t{0});
  v.Omittable("text_tokens", text_tokens, int64_t{0});
  v.Omittable("shards", shards, {});
  v.Omittable("window", window, int64_t{0});
  v.Omittable("min_patches", min_patches, int64_t{0});
  v.Omittable("max_patches", max_patches, int64_t{0});
  v.Omittable("path", path, {});
  v.OutsideDigest("base", base, {});
  v.Omittable("packed_documents", packed_documents, false);
  v.Omittable("patch", patch, int64_t{0});
  v.Omittable("pixel_shuffle", pixel_shuffle, int64_t{0});
  v.Omittable("max_image", max_image, int64_t{0});
}

template <typename V>
void Describe(V& v, Visited<V, InitializePlan>& x) {
  auto& [from, base, ignore] = x;
  v("from", from);
  v.OutsideDigest("base", base, {});
  v.Omittable("ignore", ignore, {});
}

template <typename V>
void Describe(V& v, Visited<V, Symbol>& x) {
  auto& [name, maximum, what, expected, mean] = x;
  v("name", name);
  v("maximum", maximum);
  v.Omittable("expected", expected, int64_t{0});
  v.Omittable("mean", mean, int64_t{0});
  v("what", what);
}

template <typename V>
void Describe(V& v, Visited<V, StageSchedule>& x) {
  auto& [module, stage, warmup, order] = x;
  v("module", module);
  v("stage", stage);
  v("warmup", warmup);
  v("order", order);
}

template <typename V>
void Describe(V& v, Visited<V, RankRange>& x) {
  auto& [first, count, stride] = x;
  v("first", first);
  v.Omittable("count", count, 1);
  v.Omittable("stride", stride, 1);
}

template <typename V>
void Describe(V& v, Visited<V, CheckpointRule>& x) {
  auto& [module, parameters, view, stage, cut, replicated, states, flat] = x;
  v("module", module);
  v("parameters", parameters);
  v("view", view);
  v.Omittable("stage", stage, 0);
  v.Omittable("cut", cut, {});
  v.Omittable("replicated", replicated, {});
  v.Omittable("states", states, {});
  v.Omittable("flat", flat, {});
}

template <typename V>
void Describe(V& v, Visited<V, CheckpointPlan>& x) {
  auto& [every_steps, rules, common] = x;
  v.Omittable("every_steps", every_steps, int64_t{0});
  v("common", common);
  v("rules", rules);
}

template <typename V>
void Describe(V& v, Visited<V, MemoryBytes>& x) {
  auto& [parameters, gradients, optimizer, activations, communication, workspace] = x;
  v("parameters", parameters);
  v("gradients", gradients);
  v("optimizer", optimizer);
  v("activations", activations);
  v("communication", communication);
  v("workspace", workspace);
}

template <typename V>
void Describe(V& v, Visited<V, ExchangePart>& x) {
  auto& [bridge, backward, send, value, sample_rows, group, shift] = x;
  v.Omittable("bridge", bridge, {});
  v.Omittable("backward", backward, false);
  v.Omittable("send", send, false);
  v("value", value);
  v.Omittable("sample_rows", sample_rows, {});
  v.Omittable("group", group, {});
  v.Omittable("shift", shift, 0);
}

template <typename V>
void Describe(V& v, Visited<V, Instruction>& x) {
  auto& [kind, inputs, parameters, gradients, outputs, frees, attributes, group, parts, block, frame, microbatch, stream, waits, signals,
         origin] = x;
  v("op", kind);
  v.Omittable("block", block, {});
  v.Omittable("frame", frame, {});
  v.Omittable("microbatch", microbatch, -1);
  v.Omittable("group", group, {});
  v.Omittable("stream", stream, {});
  v.Omittable("waits", waits, {});
  v.Omittable("signals", signals, {});
  v.Omittable("inputs", inputs, {});
  v.Omittable("parameters", parameters, {});
  v.Omittable("gradients", gradients, {});
  v.Omittable("outputs", outputs, {});
  v.Omittable("parts", parts, {});
  v.Omittable("attributes", attributes, {});
  v.Omittable("frees", frees, {});
  v.OutsideDigest("origin", origin, -1);
}

template <typename V>
void Describe(V& v, Visited<V, Probe>& x) {
  auto& [value, name] = x;
  v("value", value);
  v("name", name);
}

template <typename V>
void Describe(V& v, Visited<V, Block>& x) {
  auto& [name, module, inputs, outputs, saved, takes, probes, body, origin] = x;
  v("name", name);
  v.Omittable("module", module, {});
  v.OutsideDigest("origin", origin, -1);
  v.Omittable("inputs", inputs, {});
  v.Omittable("takes", takes, {});
  v("body", body);
  v.Omittable("outputs", outputs, {});
  v.Omittable("saved", saved, {});
  v.Omittable("probes", probes, {});
}

template <typename V>
void Describe(V& v, Visited<V, Role>& x) {
  auto& [name, modules, ranks, setup, step, teardown, memory, origin] = x;
  v("name", name);
  v("modules", modules);
  v("ranks", ranks);
  v.OutsideDigest("memory", memory, {});
  v.OutsideDigest("origin", origin, -1);
  v("setup", setup);
  v("step", step);
  v("teardown", teardown);
}

template <typename V>
void Describe(V& v, Visited<V, Plan>& x) {
  auto& [format_version, tool_version, name, recipe_digest, digest, precision, seed, world_size, log_every_steps, cluster, modules,
         groups, bridges, budget, optimizer, data, initialize, checkpoint, symbols, schedule, blocks, roles, origins] = x;
  v("format_version", format_version);
  v.OutsideDigest("tool_version", tool_version, {});
  v("name", name);
  v.OutsideDigest("recipe_digest", recipe_digest, {});
  v.OutsideDigest("digest", digest, {});
  v("precision", precision);
  v("seed", seed);
  v("world_size", world_size);
  v("log_every_steps", log_every_steps);
  v("cluster", cluster);
  v("budget", budget);
  v("optimizer", optimizer);
  v("data", data);
  v("initialize", initialize);
  v("checkpoint", checkpoint);
  v("symbols", symbols);
  v("modules", modules);
  v("groups", groups);
  v("bridges", bridges);
  v("schedule", schedule);
  v("blocks", blocks);
  v("roles", roles);
  v.OutsideDigest("origins", origins, {});
}

}  // namespace planwright
