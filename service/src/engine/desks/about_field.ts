import type { DeskRejection } from './desk.ts'

/** Why one field is refused, in words that follow its name: the message has both, the details tell them apart. */
export function aboutField(code: DeskRejection['code'], field: string, why: string): DeskRejection {
  return { code, message: `${field} ${why}`, details: [{ field, message: why }] }
}
