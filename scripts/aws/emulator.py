"""MiniStack, an emulator of AWS, mended where it differs from AWS in what Pawl stands on.

Run by `scripts/aws/emulator.sh`, which installs the pinned version. Each patch says what AWS does and why it
matters; each asserts what it expects of MiniStack, so that another version fails loudly instead of differing
quietly. Nothing in the product knows of the emulator.
"""
import base64
import struct
import zlib

from ministack.app import main
from ministack.core import lambda_runtime
from ministack.services import dynamodb, lambda_svc, s3, stepfunctions
from ministack.services.cloudformation import provisioners

# --- Errors of Node functions -------------------------------------------------------------------------------
# AWS reports `error.name` as errorType, which Retry and Catch match; MiniStack says Runtime.HandlerError for all
# and ends the warm process. So the worker answers "ok" with the error inside, and the caller unwraps it.

ERROR_KEY = "__functionError"

REPORT = """_realStdoutWrite(JSON.stringify({ status: "ok", result: { ERROR_KEY: {
  errorType: (VAR && VAR.name) || "Error",
  errorMessage: String((VAR && VAR.message) || VAR),
  trace: String((VAR && VAR.stack) || "").split("\\n") } } }) + "\\n");"""

REPORTS = {
    "err": """          _realStdoutWrite(JSON.stringify({
            status: "error", error: String(err.message || err), trace: err.stack || ""
          }) + "\\n");""",
    "e": """      _realStdoutWrite(JSON.stringify({
        status: "error", error: e.message, trace: e.stack
      }) + "\\n");""",
}


def report_error_names():
    script = lambda_runtime._NODEJS_WORKER_SCRIPT
    for variable, found in REPORTS.items():
        assert script.count(found) == 1, "the worker script of MiniStack has changed"
        script = script.replace(found, REPORT.replace("VAR", variable).replace("ERROR_KEY", ERROR_KEY))
    lambda_runtime._NODEJS_WORKER_SCRIPT = script
    execute = lambda_svc._execute_function_warm

    def execute_and_unwrap(func, event, request_id):
        answer = execute(func, event, request_id)
        body = answer.get("body") if isinstance(answer, dict) else None
        if not (isinstance(body, dict) and ERROR_KEY in body):
            return answer
        error = body[ERROR_KEY]
        log = "\n".join(filter(None, [answer.get("log", ""), *error["trace"]]))
        return {"body": error, "error": True, "log": log}

    lambda_svc._execute_function_warm = execute_and_unwrap


# --- StartExecution -----------------------------------------------------------------------------------------
# On AWS a Standard execution that still runs is answered with 200 when name and input are the same; MiniStack
# refuses every name that was used.


def repeat_running_starts():
    start = stepfunctions._start_execution

    def start_or_repeat(request):
        machine = stepfunctions._resolve_state_machine_arn(request.get("stateMachineArn", "").split("#")[0])
        name = request.get("name")
        if machine and name:
            region, account = stepfunctions.get_region(), stepfunctions.get_account_id()
            machine_name = stepfunctions._state_machines[machine]["name"]
            arn = f"arn:aws:states:{region}:{account}:execution:{machine_name}:{name}"
            known = stepfunctions._executions.get(arn)
            if known and known["status"] == "RUNNING" and known["input"] == request.get("input", "{}"):
                return stepfunctions.json_response({"executionArn": arn, "startDate": known["startDate"]})
        return start(request)

    stepfunctions._start_execution = start_or_repeat


# --- Checksums of multipart uploads -------------------------------------------------------------------------
# AWS keeps one checksum over the whole object when an upload asks for FULL_OBJECT, and readers can verify it;
# MiniStack always keeps a checksum over the checksums of the parts.


def keep_whole_checksums():
    complete = s3._complete_multipart_upload

    def complete_with_checksum(bucket, key, body, query, headers=None):
        headers = dict(headers or {})
        if headers.get("x-amz-checksum-type") != "FULL_OBJECT":
            return complete(bucket, key, body, query, headers)
        given = headers.pop("x-amz-checksum-crc32", None)
        upload = s3._multipart_uploads.get((query.get("uploadId") or [None])[0])
        if upload and given:
            whole = b"".join(part["body"] for _, part in sorted(upload["parts"].items()))
            if given != base64.b64encode(struct.pack(">I", zlib.crc32(whole))).decode():
                return s3._error("BadDigest", "The CRC32 you specified did not match the calculated checksum.", 400)
        answer = complete(bucket, key, body, query, headers)
        if answer[0] == 200 and given:
            stored = s3._buckets[bucket]["objects"][key]
            stored.update(checksums={"CRC32": given}, checksum_type="FULL_OBJECT")
        return answer

    s3._complete_multipart_upload = complete_with_checksum


# --- CloudFormation -----------------------------------------------------------------------------------------
# Properties that MiniStack drops without a word, and types that it refuses although nothing here needs them to
# do anything. A real `cdk deploy` of the construct must succeed.


def after_provisioning(resource_type, apply):
    """Calls `apply(physical_id, properties)` after each create and update of the type."""
    handler = provisioners._RESOURCE_HANDLERS[resource_type]
    create, update = handler["create"], handler.get("update")

    def create_and_apply(logical_id, properties, stack_name):
        physical_id, attributes = create(logical_id, properties, stack_name)
        apply(physical_id, properties)
        return physical_id, attributes

    def update_and_apply(physical_id, old, new, *rest, **named):
        answer = update(physical_id, old, new, *rest, **named)
        apply(answer[0] if isinstance(answer, tuple) else physical_id, new)
        return answer

    handler["create"] = create_and_apply
    if update:
        handler["update"] = update_and_apply


def keep_time_to_live(table, properties):
    wanted = properties.get("TimeToLiveSpecification")
    if wanted:
        specification = {**wanted, "Enabled": str(wanted.get("Enabled")).lower() == "true"}
        dynamodb._update_ttl({"TableName": table, "TimeToLiveSpecification": specification})


def keep_concurrency(function, properties):
    known = lambda_svc._functions.get(function)
    if known is None:
        return
    reserved = properties.get("ReservedConcurrentExecutions")
    known["concurrency"] = None if reserved is None else int(reserved)
    if properties.get("DeadLetterConfig"):
        known["config"]["DeadLetterConfig"] = properties["DeadLetterConfig"]


KAFKA_FIELDS = (
    "Topics",
    "SelfManagedEventSource",
    "AmazonManagedKafkaEventSourceConfig",
    "SelfManagedKafkaEventSourceConfig",
    "SourceAccessConfigurations",
)


def keep_kafka_fields(mapping, properties):
    for field in KAFKA_FIELDS:
        if properties.get(field) is not None:
            lambda_svc._esms[mapping][field] = properties[field]
    # Templates and the API of Lambda spell the servers differently.
    servers = (properties.get("SelfManagedEventSource") or {}).get("Endpoints", {}).get("KafkaBootstrapServers")
    if servers is not None:
        lambda_svc._esms[mapping]["SelfManagedEventSource"] = {"Endpoints": {"KAFKA_BOOTSTRAP_SERVERS": servers}}


INERT_TYPES = (
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::EC2::EIP",
    "AWS::EC2::NatGateway",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::Logs::QueryDefinition",
    "AWS::MSK::Cluster",
)


def inert_handler():
    """A resource that exists in its stack and nowhere else."""

    def arn(name):
        return {"Arn": f"arn:aws:inert:us-east-1:000000000000:{name}"}

    return {
        "create": lambda logical_id, properties, stack: (f"{stack}-{logical_id}", arn(f"{stack}-{logical_id}")),
        "update": lambda physical_id, old, new, *rest: (physical_id, arn(physical_id)),
        "delete": lambda physical_id, properties, *rest: None,
    }


def provision_faithfully():
    after_provisioning("AWS::DynamoDB::Table", keep_time_to_live)
    after_provisioning("AWS::Lambda::Function", keep_concurrency)
    after_provisioning("AWS::Lambda::EventSourceMapping", keep_kafka_fields)
    for resource_type in INERT_TYPES:
        provisioners._RESOURCE_HANDLERS.setdefault(resource_type, inert_handler())


if __name__ == "__main__":
    report_error_names()
    repeat_running_starts()
    keep_whole_checksums()
    provision_faithfully()
    main()
