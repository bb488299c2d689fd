import Type from 'typebox'
import { parseEmail } from '../../accounts/email_address.ts'
import { instantOf } from '../../domain/instant_text.ts'
import { RECEIVER_URL_LENGTH_MAX, readReceiverUrl } from '../../domain/webhooks/receiver_url.ts'
import type { DecimalText } from '../../engine/desks/desk.ts'
import { amountTextProblem } from '../json/number_text.ts'
import { shown } from '../json/strict_json.ts'
import type { Parameter, Reading } from './parameter.ts'

const ADDRESS_LENGTH_MAX = 200
const TAG_LENGTH_MAX = 256

function good<Value>(value: Value): Reading<Value> {
  return { ok: true, value }
}

function bad(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem }
}

/** A currency or network as the client calls it; whether it exists is for the desk to say. */
export function symbol(description: string, example: string): Parameter<string> {
  return {
    schema: Type.String({ description, minLength: 1, maxLength: 20, examples: [example] }),
    kind: 'string',
    absent: null,
    readText: (text) =>
      /^[A-Za-z0-9]{1,20}$/.test(text) ? good(text) : bad('must be 1 to 20 letters and digits'),
  }
}

export function amount(description: string, example: number): Parameter<DecimalText> {
  return {
    schema: Type.Number({ format: 'double', description, exclusiveMinimum: 0, examples: [example] }),
    kind: 'number',
    absent: null,
    readText: (text) => {
      const problem = amountTextProblem(text)
      return problem === null ? good(text) : bad(problem)
    },
  }
}

export function choice<const Value extends string>(
  values: readonly Value[],
  description: string,
): Parameter<Value> {
  return {
    schema: Type.Unsafe({ type: 'string', enum: values, description }),
    kind: 'string',
    absent: null,
    readText: (text) => {
      const value = values.find((candidate) => candidate === text)
      return value === undefined ? bad(`must be ${listed(values)}`) : good(value)
    },
  }
}

export function wholeNumber(min: number, max: number, description: string): Parameter<number> {
  return {
    schema: Type.Integer({ minimum: min, maximum: max, description }),
    kind: 'number',
    absent: null,
    readText: (text) => {
      const value = /^(0|[1-9]\d{0,14})$/.test(text) ? Number.parseInt(text, 10) : Number.NaN
      return value >= min && value <= max ? good(value) : bad(`must be a whole number from ${min} to ${max}`)
    },
  }
}

/** As the client writes it; whether it is one, and of which network, is for the desk to say. */
export function address(description: string): Parameter<string> {
  return {
    schema: Type.String({ description, minLength: 1, maxLength: ADDRESS_LENGTH_MAX }),
    kind: 'string',
    absent: null,
    readText: (text) => {
      if (text.length === 0) return bad('must not be empty')
      return isLonger(text, ADDRESS_LENGTH_MAX)
        ? bad(`must have at most ${ADDRESS_LENGTH_MAX} characters`)
        : good(text)
    },
  }
}

/** The reference counts characters, as JSON Schema does; to JavaScript some of them are two. */
function isLonger(text: string, lengthMax: number): boolean {
  return text.length > lengthMax && [...text].length > lengthMax
}

/**
 * May be left out, and is when it is empty: forms send every field that they have, also where there are no tags. What a tag may be
 * is judged by its network, and where there are none any text is ignored (spec 4.3, rule 6) that can be kept at all.
 */
export function tag(description: string): Parameter<string | null> {
  return {
    schema: Type.String({ description, maxLength: TAG_LENGTH_MAX }),
    kind: 'string',
    absent: { value: null },
    readText: (text) => {
      if (text.length === 0) return good(null)
      if (isLonger(text, TAG_LENGTH_MAX)) return bad(`must have at most ${TAG_LENGTH_MAX} characters`)
      return text.includes('\0') ? bad('must not have the character U+0000') : good(text)
    },
  }
}

/** An identifier that we gave out ourselves, such as a rate_id or a transaction hash. */
export function identifier(description: string, lengthMax = 128): Parameter<string> {
  return {
    schema: Type.String({ description, minLength: 1, maxLength: lengthMax }),
    kind: 'string',
    absent: null,
    readText: (text) =>
      /^[A-Za-z0-9_-]+$/.test(text) && text.length <= lengthMax
        ? good(text)
        : bad(`must be 1 to ${lengthMax} letters, digits, - and _`),
  }
}

export function flag(description: string): Parameter<boolean> {
  return {
    schema: Type.Boolean({ description }),
    kind: 'boolean',
    absent: null,
    readText: (text) =>
      text === 'true' || text === 'false' ? good(text === 'true') : bad('must be true or false'),
  }
}

/** Words of the client's own, in one line; may be empty. */
export function line(description: string, lengthMax: number): Parameter<string> {
  return {
    schema: Type.String({ description, maxLength: lengthMax }),
    kind: 'string',
    absent: null,
    readText: (text) => {
      if (isLonger(text, lengthMax)) return bad(`must have at most ${lengthMax} characters`)
      return /\p{Cc}/u.test(text) ? bad('must have no control characters') : good(text)
    },
  }
}

export function email(description: string): Parameter<string> {
  return {
    schema: Type.String({ description, format: 'email', maxLength: 254, examples: ['owner@example.com'] }),
    kind: 'string',
    absent: null,
    readText: (text) => {
      const parsed = parseEmail(text)
      return parsed.ok ? good(parsed.value) : bad(parsed.rejection.message)
    },
  }
}

/** Several of what `item` reads, none twice. */
export function listOf<Value extends string>(
  item: Parameter<Value>,
  { min, max }: { readonly min: number; readonly max: number },
  description: string,
): Parameter<readonly Value[]> {
  return {
    schema: Type.Unsafe({
      type: 'array',
      items: item.schema,
      minItems: min,
      maxItems: max,
      uniqueItems: true,
      description,
    }),
    kind: 'list',
    absent: null,
    readText: (text) => {
      const values = new Set<Value>()
      for (const part of text === '' ? [] : text.split(',')) {
        const reading = item.readText(part)
        if (!reading.ok) return bad(`has an item that ${reading.problem}`)
        if (values.has(reading.value)) return bad(`has ${shown(part)} twice`)
        values.add(reading.value)
      }
      if (values.size < min) return bad(`must have at least ${min} item${min === 1 ? '' : 's'}`)
      return values.size <= max ? good([...values]) : bad(`must have at most ${max} items`)
    },
  }
}

/** Epoch milliseconds of a time of RFC 3339, as answers write them or with another offset. */
export function instant(description: string): Parameter<number> {
  return {
    schema: Type.String({ description, format: 'date-time', examples: ['2026-01-31T12:00:00Z'] }),
    kind: 'string',
    absent: null,
    readText: (text) => {
      const atMs = instantOf(text)
      if (atMs !== null) return good(atMs)
      // A query has a space where its writer left a + as it was.
      return instantOf(text.replace(' ', '+')) === null
        ? bad('must be a time such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00')
        : bad('has a space where its offset has a +, which a query spells %2B')
    },
  }
}

/** `loopbackAllowed`: plain http to this machine, for the sandbox. Where it leads is checked on every delivery. */
export function callbackUrl(description: string, loopbackAllowed: boolean): Parameter<string> {
  return {
    schema: Type.String({ description, format: 'uri', maxLength: RECEIVER_URL_LENGTH_MAX }),
    kind: 'string',
    absent: null,
    readText: (text) => {
      const read = readReceiverUrl(text, loopbackAllowed)
      return read.ok ? good(text) : bad(read.rejection.message)
    },
  }
}

/** `a, b or c` */
export function listed(values: readonly string[]): string {
  const last = values.at(-1) ?? ''
  return values.length < 2 ? last : `${values.slice(0, -1).join(', ')} or ${last}`
}
