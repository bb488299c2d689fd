import type { DeskRejection } from './desk.ts'

/** Why one field is refused, in words that follow its name: the message has both, the details tell them apart. */
export function aboutField(code: DeskRejection['code'], field: string, why: string): DeskRejection {
  return { code, message: `${field} ${why}`, details: [{ field, message: why }] }
}

/** Of two fields that are refused by the same code both are told; otherwise the first, as if the second had not been looked at. */
export function aboutBoth(first: DeskRejection, second: DeskRejection): DeskRejection {
  if (first.code !== second.code || first.details === undefined || second.details === undefined) return first
  return {
    code: first.code,
    message: `${first.message}; ${second.message}`,
    details: [...first.details, ...second.details],
  }
}
