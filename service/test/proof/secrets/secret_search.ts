/** Something that holds a secret, and in what form. */
export type Leak = { readonly secret: string; readonly form: string }

export type SecretSearch = (text: string) => Leak[]

type Form = { readonly form: string; readonly text: string }

/** Shorter pieces would be found by accident. */
const PIECE_MIN = 12

/**
 * Looks for all secrets at once, in every form in which a program may write them down: as they are, as hex, base64 and
 * base64url wherever they begin in what is encoded, escaped for URLs and for JSON, and as bytes in decimal. Of a long one
 * either half is enough, so that nothing is missed that was cut off.
 */
export function openSearch(secrets: Iterable<string>): SecretSearch {
  const byStart = new Map<string, { readonly leak: Leak; readonly text: string }[]>()
  for (const secret of secrets) {
    for (const { form, text } of piecesOf(secret).flatMap(formsOf)) {
      const start = text.slice(0, PIECE_MIN)
      if (start.length < PIECE_MIN) throw new Error(`too short to be looked for: ${form}`)
      const same = byStart.get(start) ?? []
      same.push({ leak: { secret, form }, text })
      byStart.set(start, same)
    }
  }
  return (text) => {
    const leaks: Leak[] = []
    for (let at = 0; at + PIECE_MIN <= text.length; at += 1) {
      const candidates = byStart.get(text.slice(at, at + PIECE_MIN))
      for (const { leak, text: whole } of candidates ?? []) if (text.startsWith(whole, at)) leaks.push(leak)
    }
    return leaks
  }
}

const HALF_MIN = 16

function piecesOf(secret: string): readonly (string | Buffer)[] {
  const halves = <Whole extends string | Buffer>(whole: Whole): Whole[] =>
    whole.length < 2 * HALF_MIN
      ? [whole]
      : [whole.slice(0, whole.length >> 1) as Whole, whole.slice(whole.length >> 1) as Whole]
  // A key in hex is at home as bytes, and may get out as those.
  const isHex = /^(?:[0-9a-f]{2}){16,}$/.test(secret)
  return [...halves(secret), ...(isHex ? halves(Buffer.from(secret, 'hex')) : [])]
}

export function formsOf(piece: string | Buffer): readonly Form[] {
  const bytes = Buffer.from(piece as string)
  const hex = bytes.toString('hex')
  const decimals = [...bytes]
  const json = JSON.stringify(bytes.toString()).slice(1, -1)
  const forms: readonly Form[] = [
    ...(typeof piece === 'string' ? [{ form: 'as it is', text: piece }] : []),
    { form: 'hex', text: hex },
    { form: 'hex in capitals', text: hex.toUpperCase() },
    { form: 'hex with spaces', text: hex.match(/../g)?.join(' ') ?? '' },
    ...inBase64(bytes),
    { form: 'bytes in decimal', text: decimals.join(',') },
    { form: 'bytes in decimal with spaces', text: decimals.join(', ') },
    { form: 'every byte percent-encoded', text: hex.replaceAll(/../g, (byte) => `%${byte}`) },
    ...(typeof piece === 'string'
      ? [
          { form: 'percent-encoded', text: encodeURIComponent(piece) },
          { form: 'as a form writes it', text: encodeURIComponent(piece).replaceAll('%20', '+') },
          { form: 'in JSON', text: json },
          { form: 'in JSON in JSON', text: JSON.stringify(json).slice(1, -1) },
          { form: 'in JSON, all escaped', text: [...piece].map(unicodeEscape).join('') },
        ]
      : []),
  ]
  return forms.filter(({ text }, at) => forms.findIndex((one) => one.text === text) === at)
}

/** Where a text begins in what is encoded decides how it is written; the digits that it shares with others are left out. */
function inBase64(bytes: Buffer): readonly Form[] {
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
    const first = Math.ceil((before * 8) / 6)
    const last = Math.floor((padded.length * 8) / 6)
    return (['base64', 'base64url'] as const).map((form) => ({
      form: before === 0 ? form : `${form}, ${before} bytes in`,
      text: padded.toString(form).slice(first, last),
    }))
  })
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
