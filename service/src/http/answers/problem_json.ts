import type { Problem } from '../errors.ts'
import { writeDecimal, writeText } from '../json/writer.ts'

/** The error envelope (spec 1); `requestId` only where there is nothing else to tell. */
export function problemJson(problem: Problem, requestId: string | null): string {
  let json = `{"error":true,"error_code":"${problem.code}","message":${writeText(problem.message)}`
  if (problem.details !== undefined) {
    const details = problem.details.map(
      ({ field, message }) => `{"field":${writeText(field)},"message":${writeText(message)}}`,
    )
    json += `,"details":[${details.join(',')}]`
  }
  if (problem.min_amount !== undefined) json += `,"min_amount":${writeDecimal(problem.min_amount)}`
  if (problem.max_amount !== undefined) json += `,"max_amount":${writeDecimal(problem.max_amount)}`
  if (problem.currency !== undefined) json += `,"currency":${writeText(problem.currency)}`
  if (problem.server_time !== undefined) json += `,"server_time":${problem.server_time}`
  if (problem.retry_after !== undefined) json += `,"retry_after":${problem.retry_after}`
  if (requestId !== null) json += `,"request_id":${writeText(requestId)}`
  return `${json}}`
}
