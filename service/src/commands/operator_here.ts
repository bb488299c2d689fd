import { hostname, userInfo } from 'node:os'
import { type By, operator } from '../db/audit_log.ts'

/**
 * The operator, with what this machine says of who typed the command and of itself. It proves nothing, but tells one of several
 * operators from another.
 */
export function operatorHere(askUser: () => { readonly username: string } = userInfo): By {
  return { ...operator, machine: { user: userHere(askUser), host: hostname() } }
}

/** In a container the user's number often has no name, and asking for it throws. */
function userHere(askUser: () => { readonly username: string }): string {
  try {
    return askUser().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
