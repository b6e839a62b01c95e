#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads objects from a server of moto, which checks the signature of each request.

    signatures.py PROGRAM FOLDER    PROGRAM: hocket.tests.data.remote; FOLDER: where pip installs moto

Exits with 77 if pip can't install moto.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import venv

PACKAGES = ["moto[s3,iam,server]>=5,<6"]
REGION = "eu-central-1"


def install(folder):
    """Installs moto in a virtual environment, unless it is there."""
    mark = folder / "installed"
    if mark.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(pip, check=True, timeout=600)
    except (subprocess.SubprocessError, OSError) as cause:
        print(f"skipped: requests to storage that checks signatures, because pip can't install moto: {cause}")
        sys.exit(77)
    mark.touch()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_started(url):
    for _ in range(600):
        try:
            urllib.request.urlopen(url + "/moto-api/")
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("moto has not started")


def fill(url):
    """Makes objects and a user, requires signatures from now on, and returns the user's key."""
    import boto3

    anyone = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    storage = boto3.client("s3", endpoint_url=url, region_name=REGION, **anyone)
    users = boto3.client("iam", endpoint_url=url, region_name=REGION, **anyone)
    storage.create_bucket(Bucket="shards", CreateBucketConfiguration={"LocationConstraint": REGION})
    for key in ("plain", "a folder/b+c=d&ä~(1).tar"):
        storage.put_object(Bucket="shards", Key=key, Body=b"123456789" * 100000)
    storage.put_object(Bucket="shards", Key="checksum", Body=b"123456789", ChecksumAlgorithm="CRC32C", ChecksumCRC32C="4waSgw==")
    users.create_user(UserName="reader")
    rights = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    users.put_user_policy(
        UserName="reader",
        PolicyName="reads",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [rights]}),
    )
    key = users.create_access_key(UserName="reader")["AccessKey"]
    text = {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(url + "/moto-api/reset-auth", b"0", text, method="POST"))
    return key


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    install(folder)
    if pathlib.Path(sys.prefix).resolve() != folder:
        python = folder / "bin/python"
        os.execv(python, [str(python), *sys.argv])  # which has boto3
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [folder / "bin/moto_server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_started(url)
        key = fill(url)
        variables = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": url,
        }
        status = subprocess.run([program, "[signatures]"], env={**os.environ, **variables}, timeout=300).returncode
    finally:
        server.kill()
        server.wait()
    sys.exit(status)


if __name__ == "__main__":
    main()
