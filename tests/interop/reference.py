"""One batch through a toy of transformers: outputs, loss and gradients, and whether the gradients are slopes."""
import torch

from families import InputOf, language_of, patches_of_token, token_losses

TOP_K_MARGIN = 1e-5  # between the last expert that is chosen and the first that is not
STEP = 2e-6  # of a slope
ZERO = 1e-12  # of the gradient of all parameters: that of a key's bias is 0, as attention does not depend on it


def random_weights(model, generator, dtype):
    """Gives every parameter values away from the special ones (zeros, ones), such that signals stay of the order of 1.
    They are numbers of `dtype`."""
    def draw(shape, scale=1.0, mean=0.0):
        return mean + scale * torch.randn(shape, generator=generator)

    def values(name, old):
        leaf, shape = name.rsplit(".", 1)[-1], old.shape
        if leaf == "lambda1":
            return torch.ones(shape)  # RADIO has no layer scale
        if leaf == "A_log":
            return torch.log(1 + 15 * torch.rand(shape, generator=generator))
        if leaf == "dt_bias":
            return draw(shape, 0.6, -2.5)
        if leaf == "D" or "norm" in name and leaf == "weight":
            return draw(shape, 0.3, 1.0)
        if len(shape) == 1:
            return draw(shape, 0.2)
        embedding = name.endswith(("embeddings.weight", "embed_tokens.weight"))
        if leaf in ("position_embedding", "cls_register_token") or embedding:
            return draw(shape, 0.7)
        return draw(shape, 1.1 / shape[-1] ** 0.5)

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(values(name, parameter).to(dtype))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(draw(buffer.shape, 0.1).to(dtype))


def random_batch(recipe, encoder, grids, images_per_sample, generator, documents=()):
    """Recorded samples as Planwright reads them (docs/training/data.md#recorded): fp32 numbers. `documents`: the ends
    of those of each sample; none: each sample is one."""
    samples, length = recipe["batch"]["global_samples"], recipe["batch"]["sequence_length"]
    vocabulary = language_of(recipe)["vocabulary"]
    ids = torch.randint(0, vocabulary, (samples, length), generator=generator)
    # Recorded data always has an image token. Where there is no encoder, no row comes to its place, and it embeds as 0.
    token = recipe["data"]["image_token"]
    ids[ids == token] = token + 1
    batch = {}
    if encoder:
        grid = torch.tensor(grids)
        rows = (grid.prod(-1) // patches_of_token(encoder)).tolist()
        for sample, images in enumerate(images_per_sample):
            position = 1
            for _ in range(images):
                count = rows.pop(0)
                ids[sample, position:position + count] = token
                position += count + 2
        batch = {"image_grid": grid, "images_per_sample": torch.tensor(images_per_sample),
                 "patches": torch.randn(int(grid.prod(-1).sum()), 3 * encoder["patch"] ** 2,
                                        generator=generator).float().to(torch.float32)}
    labels = torch.roll(ids, -1, 1)
    mask = (torch.rand(ids.shape, generator=generator) < 0.8).to(torch.float32)
    mask[:, -1] = 0
    if encoder:
        mask[labels == recipe["data"]["image_token"]] = 0
    if documents:
        batch |= {"documents_per_sample": torch.tensor([len(ends) for ends in documents]),
                  "document_ends": torch.tensor([end for ends in documents for end in ends])}
        for row, ends in enumerate(documents):
            mask[row, torch.tensor(ends) - 1] = 0
    return batch | {"token_ids": ids, "labels": labels, "loss_mask": mask}


def forward(model, batch):
    """The loss, summed over its tokens, and the outputs under the names that Planwright gives its own."""
    outputs = {}

    def keep(name):
        def hook(_module, _inputs, output):
            if name.endswith(".router"):
                for part, value in zip(("_logits", "_weights", "_ids"), output):
                    outputs[name + "_logits" if part == "_logits" else name[:-6] + "expert" + part] = value
            else:
                outputs[name] = output
        return hook

    def keep_input(name):
        return lambda _module, inputs: outputs.__setitem__(name, inputs[0])

    hooks = [module.module.register_forward_pre_hook(keep_input(name)) if isinstance(module, InputOf)
             else module.register_forward_hook(keep(name)) for name, module in model.probes().items()]
    outputs["logits"] = model({name: value.to(torch.get_default_dtype()) if value.is_floating_point() else value
                               for name, value in batch.items()})
    for hook in hooks:
        hook.remove()
    if hasattr(model, "ordered"):
        outputs = {name: model.ordered(name, value, batch) for name, value in outputs.items()}
    outputs["token_loss"] = token_losses(outputs["logits"], batch)
    outputs["loss_sum"] = outputs["token_loss"].sum().reshape(1)
    return outputs


def expect_no_ties(model, outputs):
    """Ends the program if rounding could choose another expert, or if no token chooses some expert."""
    for name, module in model.probes().items():
        if not name.endswith(".router"):
            continue
        bias = getattr(module, "e_score_correction_bias", None)
        logits = outputs[name + "_logits"]
        scores = logits.softmax(-1) if bias is None else logits.sigmoid() + bias
        ranked = scores.sort(-1, descending=True)[0]
        # Where all are chosen, rounding can only change their order.
        margin = ((ranked[:, module.top_k - 1] - ranked[:, module.top_k]).min().item()
                  if module.top_k < module.num_experts else TOP_K_MARGIN)
        used = outputs[name[:-6] + "expert_ids"].unique().numel()
        if margin < TOP_K_MARGIN or used < module.num_experts:
            raise SystemExit(f"{name}: {used} of {module.num_experts} experts are used, the smallest margin is "
                             f"{margin:.1e}; choose another seed")


def expect_no_clamp(model, batch):
    """Ends the program if a time step is below time_step_min. transformers raises it to that; Planwright, like the
    Mamba-2 of the papers and of Megatron-LM, does not."""
    smallest = []
    mixers = [module for module in model.modules() if hasattr(module, "dt_bias")]
    hooks = [mixer.in_proj.register_forward_hook(
        lambda _m, _i, out, mixer=mixer: smallest.append(
            (torch.nn.functional.softplus(out[..., -mixer.num_heads:] + mixer.dt_bias).min().item(),
             mixer.time_step_limit[0])))
        for mixer in mixers]
    with torch.no_grad():
        forward(model, batch)
    for hook in hooks:
        hook.remove()
    if any(found < least for found, least in smallest):
        raise SystemExit(f"time steps {smallest} are clamped; choose another seed")


def trained(model):
    """Parameters that Planwright has too, by name."""
    others = ("lambda1", "video_patch_projection", *getattr(model, "untrained", ()))
    return {name: parameter for name, parameter in model.named_parameters()
            if not any(word in name for word in others)}


def length_of(tensors):
    return sum((tensor * tensor).sum().item() for tensor in tensors) ** 0.5


def length_of_gradients(parameters):
    return length_of(parameter.grad for parameter in parameters if parameter.grad is not None)


def slope_errors(model, batch, generator):
    """Checks every gradient against the slope of the loss along a random direction of that parameter, and all together
    along three directions. Returns the relative errors by name."""
    def loss_at(directions, step):
        with torch.no_grad():
            for parameter, direction in directions:
                parameter.add_(direction, alpha=step)
            loss = forward(model, batch)["loss_sum"].item()
            for parameter, direction in directions:
                parameter.sub_(direction, alpha=step)
        return loss

    parameters = trained(model)

    whole = length_of_gradients(parameters.values())

    def error(chosen):
        draws = [torch.randn(p.shape, generator=generator) for p in chosen]
        length, size = length_of(draws), length_of(p.grad for p in chosen)
        zero = size < ZERO * whole
        # A direction at right angles to the gradient says nothing. So half of it is the gradient's.
        directions = [(p, d / length + (0 if zero else p.grad / size)) for p, d in zip(chosen, draws)]
        slope = (loss_at(directions, STEP) - loss_at(directions, -STEP)) / (2 * STEP)
        expected = sum((p.grad * d).sum().item() for p, d in directions)
        return abs(slope - expected) / (whole if zero else abs(expected))

    errors = {name: error([parameter]) for name, parameter in parameters.items()}
    return errors | {f"all, direction {i}": error(list(parameters.values())) for i in (1, 2, 3)}
