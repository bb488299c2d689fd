/** A result that may be a refusal. A refusal is a value with a code; exceptions are for broken promises. */
export type Outcome<Value, Refusal = Rejection> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly rejection: Refusal }

/** Why something was refused: a code a program can read and a sentence a person can act on. */
export type Rejection = { readonly code: string; readonly message: string }

export function accept<Value>(value: Value): { readonly ok: true; readonly value: Value } {
  return { ok: true, value }
}

export function refuse<Refusal>(rejection: Refusal): { readonly ok: false; readonly rejection: Refusal } {
  return { ok: false, rejection }
}
