"""The named arrays of `layout` in compiled code.

`v = views(shape, integers, floats)` consists of the sizes and the address of each array; `v.x`
makes the array of that name where it is used. If `v` were 26 arrays with all their lengths, every
function would have more than 200 numbers as arguments, and compile several times slower. The arrays
have no reference counts, so the caller must keep the buffers.
"""

import functools

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_new_ref
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import make_array, populate_array

from anyorder.strategies.models.layout import FLOATS, INTEGERS, RING, SCALARS, Sizes

SHAPES = {**INTEGERS, **FLOATS}
NUMBERS = {name: types.int32 if name in INTEGERS else types.float64 for name in SHAPES}
BYTES = {types.int32: 4, types.float64: 8}


class Views(types.Type):
    """The type of `v`."""

    def __init__(self):
        super().__init__(name="anyorder.delta.Views")


VIEWS = Views()


@register_model(Views)
class ViewsModel(models.StructModel):
    """The sizes, and an address for each array."""

    def __init__(self, manager, fe_type):
        members = [(f"size_{name}", types.int64) for name in Sizes._fields]
        members += [(f"at_{name}", types.voidptr) for name in SHAPES]
        super().__init__(manager, fe_type, members)


def lengths_of(v, name):
    """Return the shape of an array, as `Sizes.shape` does."""
    one, fixed = ir.IntType(64)(1), {"ring": RING, "scalars": SCALARS}
    found = []
    for length in SHAPES[name]:
        if length in fixed:
            found.append(ir.IntType(64)(fixed[length]))
        elif length == "n1":
            found.append(v._builder.add(v.size_n, one))
        else:
            found.append(getattr(v, f"size_{length}"))
    return found


@intrinsic
def views(context, shape, integers, floats):
    """Return the named arrays in these buffers, in the order of `layout`."""

    def generate(context, builder, signature, arguments):
        sizes, *buffers = (
            make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        v = cgutils.create_struct_proxy(VIEWS)(context, builder)
        for k, name in enumerate(Sizes._fields):
            setattr(v, f"size_{name}", builder.load(cgutils.gep_inbounds(builder, sizes, k)))
        for buffer, names in zip(buffers, (INTEGERS, FLOATS), strict=True):
            for name in names:
                setattr(v, f"at_{name}", builder.bitcast(buffer, cgutils.voidptr_t))
                count = functools.reduce(builder.mul, lengths_of(v, name))
                buffer = builder.gep(buffer, [count])
        return v._getvalue()

    return VIEWS(shape, integers, floats), generate


@infer_getattr
class Attributes(AttributeTemplate):
    """The types of the arrays."""

    key = Views

    def generic_resolve(self, typ, name):
        """Return the type of an array."""
        return types.Array(NUMBERS[name], len(SHAPES[name]), "C") if name in SHAPES else None


@lower_getattr_generic(Views)
def named_array(context, builder, typ, value, name):
    """Return the array of a name."""
    v = cgutils.create_struct_proxy(typ)(context, builder, value)
    kind = types.Array(NUMBERS[name], len(SHAPES[name]), "C")
    array, lengths = make_array(kind)(context, builder), lengths_of(v, name)
    strides = [ir.IntType(64)(BYTES[kind.dtype])]
    for length in lengths[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.bitcast(getattr(v, f"at_{name}"), array.data.type)
    populate_array(array, data, lengths, strides, BYTES[kind.dtype], None)
    return impl_ret_new_ref(context, builder, kind, array._getvalue())
