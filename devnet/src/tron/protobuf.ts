/**
 * The wire form of protocol buffers (https://protobuf.dev/programming-guides/encoding) for the few messages of TRON. Written
 * here because the generated code that exists belongs to the client library: what it writes is read by somebody else.
 */
export type Field = {
  readonly id: number
  /** `hex`: bytes as lower-case hex. `int`: any integer or enum or boolean. */
  readonly kind: 'hex' | 'text' | 'int' | Schema
  readonly many?: true
}
export type Schema = { readonly [name: string]: Field }

type One<F extends Field> = F['kind'] extends 'hex' | 'text'
  ? string
  : F['kind'] extends 'int'
    ? bigint
    : F['kind'] extends Schema
      ? Message<F['kind']>
      : never

/** Absent is as good as empty or zero, and is not there. */
export type Message<S extends Schema> = {
  readonly [Name in keyof S]?: S[Name] extends { many: true } ? readonly One<S[Name]>[] : One<S[Name]>
}

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/** Throws on bytes that are no such message; fields that the schema does not have are passed over. */
export function decodeMessage<S extends Schema>(schema: S, bytes: Uint8Array): Message<S> {
  const reader = readerOf(bytes)
  const fields = new Map(Object.entries(schema).map(([name, field]) => [field.id, { name, ...field }]))
  const message: Record<string, unknown> = {}
  while (!reader.isAtEnd()) {
    const tag = Number(reader.varint())
    const wire = tag & 7
    const field = fields.get(tag >>> 3)
    const raw = wire === VARINT ? reader.varint() : reader.bytes(wire)
    if (field === undefined) continue
    if ((wire === VARINT) !== (field.kind === 'int')) throw new Error(`wrong wire type of ${field.name}`)
    const value = typeof raw === 'bigint' ? BigInt.asIntN(64, raw) : readValue(field.kind, raw)
    if (field.many) message[field.name] = [...((message[field.name] as unknown[]) ?? []), value]
    else if (!isDefault(value)) message[field.name] = value
  }
  return message as Message<S>
}

function readValue(kind: Field['kind'], bytes: Uint8Array): unknown {
  if (kind === 'hex') return Buffer.from(bytes).toString('hex')
  if (kind === 'text') return Buffer.from(bytes).toString()
  if (kind === 'int') throw new Error('an integer has no bytes')
  return decodeMessage(kind, bytes)
}

function isDefault(value: unknown): boolean {
  return value === '' || value === 0n
}

function readerOf(bytes: Uint8Array) {
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) break
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new Error('cut off or endless number')
  }
  return {
    isAtEnd: () => at >= bytes.length,
    varint,
    bytes: (wire: number) => {
      const fixed = { [FIXED64]: 8, [FIXED32]: 4 }[wire]
      if (fixed === undefined && wire !== BYTES) throw new Error(`wire type ${wire}`)
      const length = fixed ?? Number(varint())
      at += length
      if (at > bytes.length) throw new Error('cut off')
      return bytes.subarray(at - length, at)
    },
  }
}

/** Canonical: fields in the order of their numbers, defaults left out. */
export function encodeMessage<S extends Schema>(schema: S, message: Message<S>): Uint8Array {
  const parts: Uint8Array[] = []
  for (const [name, field] of Object.entries(schema).sort(([, one], [, other]) => one.id - other.id)) {
    const given = (message as Record<string, unknown>)[name]
    for (const value of field.many ? ((given as unknown[]) ?? []) : [given]) {
      if (value === undefined || (!field.many && isDefault(value))) continue
      if (field.kind === 'int') parts.push(varintOf(BigInt(field.id << 3)), varintOf(value as bigint))
      else {
        const bytes = bytesOf(field.kind, value)
        parts.push(varintOf(BigInt((field.id << 3) | BYTES)), varintOf(BigInt(bytes.length)), bytes)
      }
    }
  }
  return Buffer.concat(parts)
}

function bytesOf(kind: Exclude<Field['kind'], 'int'>, value: unknown): Uint8Array {
  if (kind === 'hex') return Buffer.from(value as string, 'hex')
  if (kind === 'text') return Buffer.from(value as string)
  return encodeMessage(kind, value as Message<Schema>)
}

function varintOf(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, value)
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Uint8Array.from([...bytes, Number(rest)])
}
