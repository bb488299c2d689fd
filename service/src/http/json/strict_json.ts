import { type ParseErrorCode, printParseErrorCode, visit } from 'jsonc-parser'

/** A number is kept as the text the client wrote: JSON.parse would round it. */
export type JsonNumber = { readonly numberText: string }
/** A Map, because an object has a prototype. */
export type JsonObject = ReadonlyMap<string, JsonValue>
export type JsonValue = string | boolean | null | JsonNumber | JsonObject | readonly JsonValue[]

export type StrictJson =
  | { readonly ok: true; readonly value: JsonValue }
  /** In words that follow "the body". */
  | { readonly ok: false; readonly problem: string }

/** No request of the interface nests deeper than 1. */
const DEPTH_MAX = 8
const forbiddenNames = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * JSON exactly as RFC 8259 has it, in UTF-8, and stricter where the RFC lets parsers disagree: no name twice in an
 * object, no lone surrogates, no names that are dangerous to JavaScript, bounded nesting.
 */
export function parseStrictJson(bytes: Buffer): StrictJson {
  const text = decodeUtf8(bytes)
  if (text === null) return { ok: false, problem: 'is not valid UTF-8' }
  if (text.trim() === '') return { ok: false, problem: 'is empty' }
  try {
    return { ok: true, value: build(text) }
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.message }
    throw error
  }
}

class Refusal extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null // the decoder has only one thing to say
  }
}

type Container =
  | { readonly kind: 'object'; readonly entries: Map<string, JsonValue>; name: string | null }
  | { readonly kind: 'array'; readonly items: JsonValue[] }

/** The visitor calls back in reading order; an open container is on the stack until its end is seen. */
function build(text: string): JsonValue {
  const open: Container[] = []
  let root: JsonValue | undefined
  const put = (value: JsonValue) => {
    const parent = open.at(-1)
    if (parent === undefined) root = value
    else if (parent.kind === 'array') parent.items.push(value)
    else if (parent.name !== null) parent.entries.set(parent.name, value)
  }
  const enter = (container: Container) => {
    if (open.length >= DEPTH_MAX) throw new Refusal(`is nested deeper than ${DEPTH_MAX} levels`)
    put(container.kind === 'object' ? container.entries : container.items)
    open.push(container)
  }
  const leave = () => {
    open.pop()
  }
  visit(
    text,
    {
      onObjectBegin: () => enter({ kind: 'object', entries: new Map(), name: null }),
      onArrayBegin: () => enter({ kind: 'array', items: [] }),
      onObjectEnd: leave,
      onArrayEnd: leave,
      onObjectProperty: (name, offset) => {
        const object = open.at(-1)
        if (object?.kind !== 'object') throw new Refusal(at('is not valid JSON', text, offset))
        object.name = acceptedName(name, object.entries)
      },
      onLiteralValue: (value, offset, length) => put(literal(value, text.slice(offset, offset + length))),
      onError: (error, offset) => {
        throw new Refusal(at(`is not valid JSON: ${wordsFor(error)}`, text, offset))
      },
    },
    { disallowComments: true, allowTrailingComma: false },
  )
  return closeGaps(text, root)
}

/** The visitor is made for editors and forgives more than JSON allows: JSON.parse has the last word. */
function closeGaps(text: string, root: JsonValue | undefined): JsonValue {
  try {
    JSON.parse(text)
  } catch {
    throw new Refusal('is not valid JSON')
  }
  if (root === undefined) throw new Refusal('is not valid JSON')
  return root
}

function acceptedName(name: string, entries: ReadonlyMap<string, JsonValue>): string {
  if (forbiddenNames.has(name)) throw new Refusal(`must not have a field named ${name}`)
  if (entries.has(name)) throw new Refusal(`has the field ${shown(name)} twice`)
  return name
}

function literal(value: unknown, source: string): JsonValue {
  if (typeof value === 'number') return { numberText: source }
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new Refusal('has text that is not valid Unicode')
    return value
  }
  return value === true ? true : value === false ? false : null
}

/** A name the client chose, fit to be shown in a message. */
export function shown(name: string): string {
  const text = name.length > 40 ? `${name.slice(0, 40)}…` : name
  return JSON.stringify(text.toWellFormed())
}

function at(problem: string, text: string, offset: number): string {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  const column = offset - before.lastIndexOf('\n')
  return `${problem} at line ${line}, column ${column}`
}

/** `PropertyNameExpected` → `property name expected`. */
function wordsFor(error: ParseErrorCode): string {
  const name = printParseErrorCode(error)
  if (name === 'EndOfFileExpected') return 'nothing may follow the value'
  return name.replaceAll(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase()
}
