/** An object in a reply of a node. Nothing is known of its fields. */
export type Fields = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * What something in a reply must be, or it is no answer: then they throw the connector's `NoAnswer`. `what` names it in the error:
 * `block id`.
 */
export function readersOf(NoAnswer: new (what: string, reason: string) => Error) {
  const textIn = (value: unknown, what: string): string => {
    if (typeof value !== 'string') throw new NoAnswer(what, 'it should be text')
    return value
  }
  return {
    textIn,
    /** 32 bytes in lowercase hex. */
    hashIn: (value: unknown, what: string): string => {
      const text = textIn(value, what).toLowerCase()
      if (!/^[0-9a-f]{64}$/.test(text)) throw new NoAnswer(what, 'it should be 64 hexadecimal digits')
      return text
    },
    integerIn: (value: unknown, what: string): number => {
      if (typeof value !== 'number' || !Number.isSafeInteger(value))
        throw new NoAnswer(what, 'it should be a whole number')
      return value
    },
    objectIn: (value: unknown, what: string): Fields => {
      if (!isObject(value)) throw new NoAnswer(what, 'it should be an object')
      return value
    },
    listIn: (value: unknown, what: string): readonly unknown[] => {
      if (!Array.isArray(value)) throw new NoAnswer(what, 'it should be a list')
      return value
    },
  }
}
