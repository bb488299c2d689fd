import { refuse } from '../domain/outcome.ts'
import type { SignRejection } from './signer.ts'

export function refuseToSign(code: SignRejection['code'], message: string) {
  return refuse<SignRejection>({ code, message })
}
